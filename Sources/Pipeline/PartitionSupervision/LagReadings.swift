import AsyncPrimitives
import ChangeLog
import Metrics
import Synchronization

/// How far a stage is behind in a partition.
struct StageLag: Sendable {
    /// The records that it has not finished.
    let records: Int
    /// The age of the oldest of them; `nil` where that was not read in time.
    var seconds: Double?
}

/// Reads the lag of sources from the log, for scrapes that come at any time.
///
/// A call to a log that does not respond cannot be cancelled and occupies a thread of the log. So one reading runs at a time, in
/// which at most one call is not answered in time: scrapes that come meanwhile get what it has read.
final class LagReadings<Log: ChangeLog>: Sendable {
    private struct Progress: Sendable {
        /// By the indices of the sources.
        var lags: [Int: StageLag] = [:]
        /// Whether the limit has passed: no further source is read.
        var isLate = false
        var isComplete = false
    }

    private typealias Reading = AwaitableState<Progress>

    private struct State {
        var running: Reading?
        /// The indices of the sources as their ends are read: the one that was not answered in time comes last.
        var order: [Int]
        /// Likewise for the times of the oldest records, of which a reading may have time for a few: those that were read come last.
        var orderOfTimes: [Int]
    }

    private let sources: [LagSource]
    private let log: Log
    private let now: @Sendable () -> Int64
    private let limit: Duration
    private let clock: any Clock<Duration>
    private let state: Mutex<State>

    /// - Parameters:
    ///   - now: compared with the log's times, in microseconds since 1970.
    ///   - limit: how long a reading may delay its scrapes.
    init(
        of sources: [LagSource], in log: Log, now: @escaping @Sendable () -> Int64, within limit: Duration,
        clock: any Clock<Duration>
    ) {
        self.sources = sources
        self.log = log
        self.now = now
        self.limit = limit
        self.clock = clock
        state = Mutex(State(order: Array(sources.indices), orderOfTimes: Array(sources.indices)))
    }

    /// What is read of the sources whose position is known within the limit, by their indices.
    func lags() async -> [Int: StageLag] {
        let (reading, isNew) = state.withLock { state in
            if let running = state.running { return (running, false) }
            let reading = Reading(Progress())
            state.running = reading
            return (reading, true)
        }
        // Not a child of this task: a client that hangs up must not leave the others without figures.
        if isNew { Task { await read(reading) } }
        do { try await reading.wait { $0.isLate || $0.isComplete } } catch {
            // The client has hung up.
        }
        return reading.value.lags
    }

    /// Reads the ends of all sources, which are two calls each, and then the times of those that lag, which are several.
    private func read(_ reading: Reading) async {
        let (order, orderOfTimes) = state.withLock { ($0.order, $0.orderOfTimes) }
        let timer = Task { [clock, limit] in
            // Cancelled when the reading is complete first.
            do { try await clock.sleep(for: limit) } catch { return }
            reading.update { $0.isLate = true }
        }
        let ends = await read(order, reading, readEnd(_:from:_:))
        let times = await read(orderOfTimes, reading, readTime(_:from:_:))
        timer.cancel()
        state.withLock { state in
            state.running = nil
            if let late = ends.late { state.order = order.filter { $0 != late } + [late] }
            if times.late != nil { state.orderOfTimes = orderOfTimes.filter { !times.read.contains($0) } + times.read }
        }
        reading.update { $0.isComplete = true }
    }

    /// Reads something of one source after the other until the limit has passed.
    ///
    /// - Returns: those that were read, and the one during which the limit passed.
    private func read(
        _ order: [Int], _ reading: Reading, _ body: (Int, Int64, Reading) async throws(ChangeLogError) -> Void
    ) async -> (read: [Int], late: Int?) {
        var read: [Int] = []
        for index in order {
            if reading.value.isLate { break }
            guard let next = sources[index].position.value else { continue }
            do throws(ChangeLogError) {
                try await body(index, Int64(next), reading)
            } catch {
                // Without an answer from the log, the scrape has no lag of this partition.
            }
            read.append(index)
            if reading.value.isLate { return (read, index) }
        }
        return (read, nil)
    }

    private func readEnd(_ index: Int, from next: Int64, _ reading: Reading) async throws(ChangeLogError) {
        let records = Int(max(0, try await log.range(of: sources[index].topic).end - next))
        reading.update { $0.lags[index] = StageLag(records: records, seconds: records == 0 ? 0 : nil) }
    }

    private func readTime(_ index: Int, from next: Int64, _ reading: Reading) async throws(ChangeLogError) {
        guard let lag = reading.value.lags[index], lag.seconds == nil,
            let time = try await time(of: sources[index].topic, at: next, reading)
        else { return }
        let seconds = Double(max(0, now() - time)) / 1_000_000
        reading.update { $0.lags[index] = StageLag(records: lag.records, seconds: seconds) }
    }

    /// The time of the first record at or after an offset; `nil` when it is not read before the limit.
    private func time(
        of partition: TopicPartition, at offset: Int64, _ reading: Reading
    ) async throws(ChangeLogError) -> Int64? {
        if reading.value.isLate { return nil }
        let reader = try await log.reader(of: partition, from: offset)
        let first = Task { try await reader.next(maximumBytes: 1).first?.time }
        let limit = Task {
            try await reading.wait { $0.isLate }
            first.cancel()
        }
        let time = await first.result
        limit.cancel()
        await reader.close()
        switch time {
        case .success(let time): return time
        case .failure(let error as ChangeLogError): throw error
        // Cancelled: the limit has passed.
        case .failure: return nil
        }
    }
}
