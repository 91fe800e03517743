import AsyncPrimitives
import ChangeLog
import Observability

/// Retries failed reads of a log, for work that would otherwise start again from the beginning.
///
/// Producers and memberships are the log's own.
package struct RetryingLog<Base: ChangeLog>: ChangeLog {
    private let base: Base
    private let retries: RetryPolicy
    private let logger: Logger

    package var partitionCount: Int { base.partitionCount }
    package var maximumRecordSize: Int { base.maximumRecordSize }

    /// - Parameters:
    ///   - limit: how long it waits, in all, for a call to succeed.
    ///   - clock: measures the pauses.
    ///   - logger: says what is tried again.
    package init(
        _ base: Base, limit: Duration = .seconds(60), clock: any Clock<Duration> = ContinuousClock(), logger: Logger
    ) {
        self.base = base
        retries = RetryPolicy(delays: .milliseconds(250)...(.seconds(5)), limit: limit, clock: clock)
        self.logger = logger
    }

    package func producer() async throws(ChangeLogError) -> Base.Producer { try await base.producer() }

    package func join(group: String, topic: Topic) async throws(ChangeLogError) -> Base.Membership {
        try await base.join(group: group, topic: topic)
    }

    package func reader(
        of partition: TopicPartition, from offset: Int64
    ) async throws(ChangeLogError) -> RetryingReader<Base.Reader> {
        let reader = try await retries.call(logger) { () throws(ChangeLogError) -> Base.Reader in
            try await base.reader(of: partition, from: offset)
        }
        return RetryingReader(reader, retries, logger)
    }

    package func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        try await retries.call(logger) { () throws(ChangeLogError) -> LogRange in try await base.range(of: partition) }
    }
}

package struct RetryingReader<Base: LogReader>: LogReader {
    private let base: Base
    private let retries: RetryPolicy
    private let logger: Logger

    fileprivate init(_ base: Base, _ retries: RetryPolicy, _ logger: Logger) {
        self.base = base
        self.retries = retries
        self.logger = logger
    }

    package func next(maximumBytes: Int) async throws -> [LogRecord] {
        try await retries.call(logger) { try await base.next(maximumBytes: maximumBytes) }
    }

    package func close() async { await base.close() }
}

extension RetryPolicy {
    /// Makes a call to the log, again while its failure is retriable.
    fileprivate func call<Value, Failure: Error>(
        _ logger: Logger, _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await run(body) {
            ($0 as? ChangeLogError)?.isRetriable == true
        } willRetry: { error, attempt in
            if attempt == 1 { logger.warning("Reading the log failed; trying again", error: error) }
        }
    }
}
