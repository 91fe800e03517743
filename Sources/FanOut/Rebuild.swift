import RecordStore
import SQLite
import SyncModel
import Synchronization

/// Makes a stream file from the pieces of the tables' snapshot.
///
/// The store hands out the pieces on a thread of its own, which therefore writes the file, too. The lock gives it to one
/// thread at a time, and nobody waits for it.
final class Rebuild: Sendable {
    private struct State {
        var file: StreamFile?
        var position: StoredPosition?
        /// Rows and outcomes that the next transaction writes: about ``FanOutConfiguration/rebuildRows``.
        var rows: [OrderedRow] = []
        var outcomes: [StoredOutcome] = []
        var rowCount = 0
        var isCancelled = false
    }

    /// Why a snapshot is of no use.
    enum Mismatch: Error, CustomStringConvertible {
        /// The tables have reached a newer schema version than the one asked for.
        case newerSchema(Int)
        /// The store broke its contract.
        case brokenSnapshot(String)

        var description: String {
            switch self {
            case .newerSchema(let ordinal): "the tables have reached schema version \(ordinal) meanwhile"
            case .brokenSnapshot(let what): "the tables' snapshot is not usable: \(what)"
            }
        }
    }

    private let identity: StreamFile.Identity
    private let schema: SchemaHistory.Entry?
    private let batchRows: Int
    private let progress: @Sendable (Int) -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - schema: the version whose columns the rows have; `nil` where the tables are empty.
    ///   - progress: told after each transaction how many rows there are.
    init(
        _ identity: StreamFile.Identity, schema: SchemaHistory.Entry?, batchRows: Int,
        progress: @escaping @Sendable (Int) -> Void
    ) {
        self.identity = identity
        self.schema = schema
        self.batchRows = batchRows
        self.progress = progress
    }

    /// Takes a piece.
    func add(_ piece: SnapshotPiece) throws {
        let written = try state.withLock { state -> Int? in
            if state.isCancelled { throw CancellationError() }
            switch piece {
            case .position(let position):
                guard state.position == nil else { throw Mismatch.brokenSnapshot("two positions") }
                guard position.state.schemaOrdinal <= schema?.version.ordinal ?? 0 else {
                    throw Mismatch.newerSchema(position.state.schemaOrdinal)
                }
                state.position = position
                state.file = try StreamFile(creating: identity)
                return nil
            case .rows(let rows): state.rows += rows
            case .outcomes(let outcomes): state.outcomes += outcomes
            }
            guard state.rows.count + state.outcomes.count >= batchRows else { return nil }
            try flush(&state)
            return state.rowCount
        }
        if let written { progress(written) }
    }

    /// Finishes the file, at the position that the snapshot stands for.
    ///
    /// - Returns: how many rows it has.
    func finish() throws -> Int {
        try state.withLock { state in
            if state.isCancelled { throw CancellationError() }
            guard let position = state.position, let file = state.file else {
                throw Mismatch.brokenSnapshot("it has no position")
            }
            try flush(&state)
            try file.finish(at: StreamPosition(position))
            state.file = nil
            try file.close()
            return state.rowCount
        }
    }

    /// Makes further pieces fail.
    func cancel() { state.withLock { $0.isCancelled = true } }

    /// Closes the file if it was not finished.
    func abandon() throws {
        try state.withLock { state in
            let file = state.file
            state.file = nil
            try file?.close()
        }
    }

    private func flush(_ state: inout State) throws {
        guard let file = state.file, let position = state.position else {
            throw Mismatch.brokenSnapshot("rows come before the position")
        }
        guard state.rows.isEmpty || schema != nil else { throw Mismatch.brokenSnapshot("rows without a schema") }
        guard state.rows.allSatisfy({ $0.timeStamp <= position.state.timeStamp }) else {
            throw Mismatch.brokenSnapshot("a row is newer than the position")
        }
        try file.load(state.rows, state.outcomes, schema: schema)
        state.rowCount += state.rows.count
        state.rows.removeAll(keepingCapacity: true)
        state.outcomes.removeAll(keepingCapacity: true)
    }
}

extension StreamFile {
    /// Writes rows and outcomes of the tables into a file that is being made, in one transaction.
    fileprivate func load(_ rows: [OrderedRow], _ outcomes: [StoredOutcome], schema: SchemaHistory.Entry?) throws {
        var transaction = StreamTransaction(state) { self.loaded[$0] }
        _ = try connection.transaction(.immediate) {
            if let schema {
                let renderer = renderer(schema)
                for row in rows { try put(row, renderer, isNew: true, &transaction) }
            }
            for outcome in outcomes { try keep(OutcomePiece(outcome), &transaction) }
            return try transaction.finish(in: self)
        }
        state = transaction.state
        for (owner, touched) in transaction.owners { loaded[owner] = touched.heads }
    }

    /// Writes the position, with which a file is whole.
    func finish(at position: StreamPosition) throws {
        var transaction = StreamTransaction(state) { _ in nil }
        transaction.state.position = position
        metaChecksum = try connection.transaction(.immediate) {
            _ = try transaction.finish(in: self)
            return try writeMeta(transaction.state)
        }
        state = transaction.state
    }
}
