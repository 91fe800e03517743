import ChangeLog
import Observability

/// A log that is read again where what failed may pass, for work that would have to begin anew otherwise.
///
/// Only reading is: a producer and a membership are the log's own.
public struct PatientLog<Base: ChangeLog>: ChangeLog {
    private let base: Base
    private let patience: Patience

    /// How many partitions the log has.
    public var partitionCount: Int { base.partitionCount }
    /// The largest record that the log takes.
    public var maximumRecordSize: Int { base.maximumRecordSize }

    /// Reads a log.
    ///
    /// - Parameters:
    ///   - limit: how long it waits, in all, for a call to succeed.
    ///   - clock: measures the pauses.
    ///   - logger: says what is tried again.
    public init(
        _ base: Base, limit: Duration = .seconds(60), clock: any Clock<Duration> = ContinuousClock(), logger: Logger
    ) {
        self.base = base
        patience = Patience(limit: limit, clock: clock, logger: logger)
    }

    /// Appends as the log does.
    public func producer() async throws(ChangeLogError) -> Base.Producer { try await base.producer() }

    /// Shares partitions as the log does.
    public func join(group: String, topic: Topic) async throws(ChangeLogError) -> Base.Membership {
        try await base.join(group: group, topic: topic)
    }

    /// Reads a partition.
    public func reader(
        of partition: TopicPartition, from offset: Int64
    ) async throws(ChangeLogError) -> PatientReader<Base.Reader> {
        var patience = patience
        while true {
            do throws(ChangeLogError) {
                return PatientReader(try await base.reader(of: partition, from: offset), self.patience)
            } catch {
                try await patience.rest(after: error)
            }
        }
    }

    /// The offsets that a partition holds now.
    public func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        var patience = patience
        while true {
            do throws(ChangeLogError) {
                return try await base.range(of: partition)
            } catch {
                try await patience.rest(after: error)
            }
        }
    }
}

/// Reads a partition of a ``PatientLog``.
public struct PatientReader<Base: LogReader>: LogReader {
    private let base: Base
    private let patience: Patience

    fileprivate init(_ base: Base, _ patience: Patience) {
        self.base = base
        self.patience = patience
    }

    /// The next records.
    public func next(maximumBytes: Int) async throws -> [LogRecord] {
        var patience = patience
        while true {
            do {
                return try await base.next(maximumBytes: maximumBytes)
            } catch let error as ChangeLogError {
                try await patience.rest(after: error)
            }
        }
    }

    /// Ends the reader.
    public func close() async { await base.close() }
}

/// How long a call is made again.
private struct Patience: Sendable {
    private let limit: Duration
    private let clock: any Clock<Duration>
    private let logger: Logger
    private var waited = Duration.zero
    private var pause = Duration.milliseconds(250)

    init(limit: Duration, clock: any Clock<Duration>, logger: Logger) {
        self.limit = limit
        self.clock = clock
        self.logger = logger
    }

    /// Waits for the next attempt.
    ///
    /// - Throws: the error, where it does not pass, or lasts, or the task is cancelled.
    mutating func rest(after failure: ChangeLogError) async throws(ChangeLogError) {
        guard failure.isRetriable, waited < limit else { throw failure }
        if waited == .zero { logger.warning("The log could not be read and is read again", error: failure) }
        do { try await clock.sleep(for: pause) } catch { throw failure }
        waited += pause
        pause = min(pause * 2, .seconds(5))
    }
}
