import RecordStore
import SQLite
import SyncModel
import Synchronization

/// Builds a stream file from a snapshot of the tables.
///
/// The store passes the chunks on its own thread, which therefore writes the file, too. The lock serializes the
/// threads; it is not contended.
final class Rebuild: Sendable {
    private struct State {
        var file: StreamFile?
        var position: StoredPosition?
        /// Rows and outcomes of the next transaction, about ``FanOutConfiguration/rebuildRows``.
        var rows: [OrderedRow] = []
        var outcomes: [StoredOutcome] = []
        var rowCount = 0
        var outcomeCount = 0
        /// The time since the first row was read.
        var elapsed: (@Sendable () -> Duration)?
        /// The elapsed time at which the next report is due.
        var nextReport: Duration
        var isCancelled = false
    }

    /// Why a snapshot cannot be used.
    enum Mismatch: Error, CustomStringConvertible {
        /// The tables have reached a newer schema version than the requested one.
        case newerSchema(Int)
        /// The store violated its contract.
        case brokenSnapshot(String)

        var description: String {
            switch self {
            case .newerSchema(let ordinal): "the tables reached schema version \(ordinal) during the snapshot"
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
    private let report: @Sendable (_ progress: RebuildProgress, _ isReport: Bool) -> Void
    private let state: Mutex<State>

    /// - Parameters:
    ///   - schema: the version of the rows' columns; `nil` for empty tables.
    ///   - size: the approximate size of the snapshot.
    ///   - report: called at the start and after each transaction; `isReport` when a log line is due.
    init(
        _ identity: StreamFile.Identity, schema: SchemaHistory.Entry?, size: PartitionSize,
        _ configuration: FanOutConfiguration, clock: any Clock<Duration>,
        report: @escaping @Sendable (_ progress: RebuildProgress, _ isReport: Bool) -> Void
    ) {
        self.identity = identity
        self.schema = schema
        self.size = size
        batchRows = configuration.rebuildRows
        reports = configuration.rebuildReports
        self.clock = clock
        self.report = report
        state = Mutex(State(nextReport: reports))
    }

    /// Reports the start, if there are rows.
    func begin() {
        if size.rows > 0 { report(RebuildProgress(done: 0, total: total, isExact: size.isExact), true) }
    }

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
            case .usage: return
            }
            if state.elapsed == nil { state.elapsed = clock.stopwatch() }
            guard state.rows.count + state.outcomes.count >= batchRows else { return }
            try flush(&state)
            reportProgress(&state)
        }
    }

    /// Completes the file at the position of the snapshot.
    ///
    /// - Returns: the number of rows.
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

    /// Makes further chunks fail.
    func cancel() { state.withLock { $0.isCancelled = true } }

    /// Closes the file if it is incomplete.
    func abandon() throws {
        try state.withLock { state in
            let file = state.file
            state.file = nil
            try file?.close()
        }
    }

    private var total: Int { size.rows + size.outcomes }

    private func reportProgress(_ state: inout State) {
        guard let elapsed = state.elapsed?() else { return }
        let isReport = elapsed >= state.nextReport
        if isReport { state.nextReport = elapsed + reports }
        report(
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
    /// Writes rows and outcomes of the tables in one transaction.
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

    /// Writes the position, which completes the file.
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
    /// Returns a closure that measures the time since this call.
    fileprivate func stopwatch() -> @Sendable () -> Duration {
        let start = now
        return { start.duration(to: now) }
    }
}

/// The progress of a rebuild, in rows and outcomes together.
package struct RebuildProgress: Sendable, Hashable, CustomStringConvertible {
    /// The number in the new file.
    package let done: Int
    /// The expected number, at least ``done``.
    package let total: Int
    /// Whether the total was counted; estimates may be off by a few percent.
    package let isExact: Bool
    /// Since the first row was read; zero before.
    package let elapsed: Duration

    package init(done: Int, total: Int, isExact: Bool, elapsed: Duration = .zero) {
        self.done = done
        self.total = max(done, total)
        self.isExact = isExact
        self.elapsed = elapsed
    }

    /// The average rate so far; `nil` before the first.
    package var perSecond: Double? {
        done > 0 && elapsed > .zero ? Double(done) / (elapsed / .seconds(1)) : nil
    }

    /// The remaining time at that rate; `nil` before the first.
    package var timeLeft: Duration? {
        perSecond.map { .seconds(Double(total - done) / $0) }
    }

    package var description: String {
        var words = "\(done) of \(isExact ? "" : "about ")\(total) rows and outcomes"
        if let perSecond, let timeLeft {
            words += ", \(Int(perSecond.rounded())) a second, \(Self.words(timeLeft)) left"
        }
        return words
    }

    /// A time in a readable unit: 119 s, 119 min, 2 h.
    private static func words(_ time: Duration) -> String {
        let seconds = Int((time / .seconds(1)).rounded(.up))
        if seconds < 120 { return "\(seconds) s" }
        let minutes = (seconds + 59) / 60
        return minutes < 120 ? "\(minutes) min" : "\((minutes + 59) / 60) h"
    }
}
