/// A component that runs until it is asked to stop: a server, a consumer, a writer.
package protocol Service: Sendable {
    /// Runs until the group shuts down gracefully, then finishes pending work and returns.
    ///
    /// Shutdown does not cancel the task: await `gracefulShutdown()`, or use `withGracefulShutdownHandler`. The task is
    /// cancelled only when the service exceeds its `ServiceGroup.Member.stopLimit`, so that a final flush within the
    /// limit is not interrupted. An error stops the whole group.
    func run() async throws

    /// Returns as soon as the service is ready, and the group starts the next one. Called once, while `run` is running.
    ///
    /// By default a service is ready at once.
    func untilReady() async throws
}

extension Service {
    package func untilReady() async throws {}
}

/// Why a group ended without an error of a service.
package enum ServiceGroupError: Error, Sendable, Hashable, CustomStringConvertible {
    /// `run` returned before the service was asked to stop.
    case finishedUnexpectedly(service: String)

    case startLimitPassed(service: String, limit: Duration)

    /// A service did not stop in time and was cancelled; its final work may be incomplete.
    case stopLimitPassed(service: String, limit: Duration)

    package var description: String {
        switch self {
        case .finishedUnexpectedly(let service):
            "the service \(service) ended although it was not asked to stop"
        case .startLimitPassed(let service, let limit):
            "the service \(service) was not ready within \(limit)"
        case .stopLimitPassed(let service, let limit):
            "the service \(service) did not stop within \(limit)"
        }
    }
}
