/// A part of the process that runs until it is told to stop: a server, a consumer, a writer.
package protocol Service: Sendable {
    /// Runs until the group shuts down gracefully, then finishes what must be finished and returns.
    ///
    /// Shutdown is a signal, not cancellation: await `gracefulShutdown()`, or use `withGracefulShutdownHandler`. The task is
    /// cancelled only when the service takes longer than its `ServiceGroup.Member.stopLimit`, so that a last flush within
    /// that limit is never cut off. An error thrown stops the whole group.
    func run() async throws

    /// Returns as soon as the service can do its work; services after it in the group are started then.
    ///
    /// Called once, while `run` is running. By default a service is ready when it is started.
    func untilReady() async throws
}

extension Service {
    /// Ready at once.
    package func untilReady() async throws {}
}

/// Why a group ended, other than by an error of a service.
package enum ServiceGroupError: Error, Sendable, Hashable, CustomStringConvertible {
    /// `run` returned though nobody asked it to.
    case finishedUnexpectedly(service: String)

    /// A service was not ready in time.
    case startLimitPassed(service: String, limit: Duration)

    /// A service did not stop in time; it was cancelled, and what it had to finish may be unfinished.
    case stopLimitPassed(service: String, limit: Duration)

    /// One sentence.
    package var description: String {
        switch self {
        case .finishedUnexpectedly(let service):
            "the service \(service) finished although nothing told it to"
        case .startLimitPassed(let service, let limit):
            "the service \(service) was not ready within \(limit)"
        case .stopLimitPassed(let service, let limit):
            "the service \(service) did not stop within \(limit)"
        }
    }
}
