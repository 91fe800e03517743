import ChangeLog
import Observability

/// A log that is read again where what failed may pass, for work that would have to begin anew otherwise.
///
/// Only reading is: a producer and a membership are the log's own.
package struct RetryingLog<Base: ChangeLog>: ChangeLog {
    private let base: Base
    private let patience: Patience

    /// How many partitions the log has.
    package var partitionCount: Int { base.partitionCount }
    /// The largest record that the log takes.
    package var maximumRecordSize: Int { base.maximumRecordSize }

    /// Reads a log.
    ///
    /// - Parameters:
    ///   - limit: how long it waits, in all, for a call to succeed.
    ///   - clock: measures the pauses.
    ///   - logger: says what is tried again.
    package init(
        _ base: Base, limit: Duration = .seconds(60), clock: any Clock<Duration> = ContinuousClock(), logger: Logger
    ) {
        self.base = base
        patience = Patience(limit: limit, clock: clock, logger: logger)
    }

    /// Appends as the log does.
    package func producer() async throws(ChangeLogError) -> Base.Producer { try await base.producer() }

    /// Shares partitions as the log does.
    package func join(group: String, topic: Topic) async throws(ChangeLogError) -> Base.Membership {
        try await base.join(group: group, topic: topic)
    }

    /// Reads a partition.
    package func reader(
        of partition: TopicPartition, from offset: Int64
    ) async throws(ChangeLogError) -> RetryingReader<Base.Reader> {
        let reader = try await patience.ask { () throws(ChangeLogError) -> Base.Reader in
            try await base.reader(of: partition, from: offset)
        }
        return RetryingReader(reader, patience)
    }

    /// The offsets that a partition holds now.
    package func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        try await patience.ask { () throws(ChangeLogError) -> LogRange in try await base.range(of: partition) }
    }
}

/// Reads a partition of a ``RetryingLog``.
package struct RetryingReader<Base: LogReader>: LogReader {
    private let base: Base
    private let patience: Patience

    fileprivate init(_ base: Base, _ patience: Patience) {
        self.base = base
        self.patience = patience
    }

    /// The next records.
    package func next(maximumBytes: Int) async throws -> [LogRecord] {
        try await patience.ask { try await base.next(maximumBytes: maximumBytes) }
    }

    /// Ends the reader.
    package func close() async { await base.close() }
}

/// How long a call is made again.
private struct Patience: Sendable {
    let limit: Duration
    let clock: any Clock<Duration>
    let logger: Logger

    /// Makes a call, and makes it again while what failed may pass.
    ///
    /// - Throws: what the call threw last, also when the task is cancelled in a pause.
    func ask<Value, Failure: Error>(
        _ call: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        var backoff = Backoff(.milliseconds(250)...(.seconds(5)))
        var waited = Duration.zero
        while true {
            let reason: Failure
            do throws(Failure) {
                return try await call()
            } catch {
                reason = error
            }
            guard let failure = reason as? ChangeLogError, failure.isRetriable, waited < limit else { throw reason }
            if waited == .zero { logger.warning("The log could not be read and is read again", error: failure) }
            let pause = backoff.next()
            do { try await clock.sleep(for: pause) } catch { throw reason }
            waited += pause
        }
    }
}
