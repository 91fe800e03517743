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
        var outcomeCount = 0
        /// Tells how long ago the first of them was read.
        var elapsed: (@Sendable () -> Duration)?
        /// When that is to be told again.
        var nextReport: Duration
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
    private let size: PartitionSize
    private let batchRows: Int
    private let reports: Duration
    private let clock: any Clock<Duration>
    private let tell: @Sendable (_ progress: RebuildProgress, _ isReport: Bool) -> Void
    private let state: Mutex<State>

    /// - Parameters:
    ///   - schema: the version whose columns the rows have; `nil` where the tables are empty.
    ///   - size: how much the snapshot has, about.
    ///   - clock: measures how long it takes.
    ///   - tell: told when there are rows to come, and after each transaction; whether it is time for a report.
    init(
        _ identity: StreamFile.Identity, schema: SchemaHistory.Entry?, size: PartitionSize,
        _ configuration: FanOutConfiguration, clock: any Clock<Duration>,
        tell: @escaping @Sendable (_ progress: RebuildProgress, _ isReport: Bool) -> Void
    ) {
        self.identity = identity
        self.schema = schema
        self.size = size
        batchRows = configuration.rebuildRows
        reports = configuration.rebuildReports
        self.clock = clock
        self.tell = tell
        state = Mutex(State(nextReport: reports))
    }

    /// Says that it begins, where there are rows to come.
    func begin() {
        if size.rows > 0 { tell(RebuildProgress(done: 0, total: total, isExact: size.isExact), true) }
    }

    /// Takes a piece.
    func add(_ piece: SnapshotChunk) throws {
        try state.withLock { state in
            if state.isCancelled { throw CancellationError() }
            switch piece {
            case .position(let position):
                guard state.position == nil else { throw Mismatch.brokenSnapshot("two positions") }
                guard position.state.schemaOrdinal <= schema?.version.ordinal ?? 0 else {
                    throw Mismatch.newerSchema(position.state.schemaOrdinal)
                }
                state.position = position
                state.file = try StreamFile(creating: identity)
                return
            case .rows(let rows): state.rows += rows
            case .outcomes(let outcomes): state.outcomes += outcomes
            }
            if state.elapsed == nil { state.elapsed = clock.stopwatch() }
            guard state.rows.count + state.outcomes.count >= batchRows else { return }
            try flush(&state)
            tellProgress(&state)
        }
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

    private var total: Int { size.rows + size.outcomes }

    private func tellProgress(_ state: inout State) {
        guard let elapsed = state.elapsed?() else { return }
        let isReport = elapsed >= state.nextReport
        if isReport { state.nextReport = elapsed + reports }
        tell(
            RebuildProgress(
                done: state.rowCount + state.outcomeCount, total: total, isExact: size.isExact, elapsed: elapsed),
            isReport)
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
        state.outcomeCount += state.outcomes.count
        state.rows.removeAll(keepingCapacity: true)
        state.outcomes.removeAll(keepingCapacity: true)
    }
}

extension StreamFile {
    /// Writes rows and outcomes of the tables into a file that is being made, in one transaction.
    fileprivate func load(_ rows: [OrderedRow], _ outcomes: [StoredOutcome], schema: SchemaHistory.Entry?) throws {
        var transaction = FileTransaction(state) { self.loaded[$0] }
        _ = try connection.transaction(.immediate) {
            if let schema {
                let renderer = renderer(schema)
                for row in rows { try put(row, renderer, over: .zero, &transaction) }
            }
            for outcome in outcomes { try keep(OutcomePiece(outcome), &transaction) }
            return try transaction.finish(in: self)
        }
        state = transaction.state
        for (owner, touched) in transaction.owners { loaded[owner] = touched.heads }
    }

    /// Writes the position, with which a file is whole.
    func finish(at position: StreamPosition) throws {
        var transaction = FileTransaction(state) { _ in nil }
        transaction.state.position = position
        metaChecksum = try connection.transaction(.immediate) {
            _ = try transaction.finish(in: self)
            return try writeMeta(transaction.state)
        }
        state = transaction.state
    }
}

extension Clock where Duration == Swift.Duration {
    /// Tells how long ago it was made.
    fileprivate func stopwatch() -> @Sendable () -> Duration {
        let start = now
        return { start.duration(to: now) }
    }
}
