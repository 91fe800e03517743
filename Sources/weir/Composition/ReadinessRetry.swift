import AsyncPrimitives
import ChangeLog
import Control
import Observability
import ServiceLifecycle

/// Retries what fails because of another machine; the log has each reason once, and the readiness of the process shows it
/// while it lasts.
struct ReadinessRetry: Sendable {
    /// The operation, for the log: "Opening the log in Kafka".
    let what: String
    let condition: ReadinessCondition
    let logger: Logger

    private static let pauses = Duration.milliseconds(250)...(.seconds(10))
    /// How long an attempt after a failure must run before the process is ready again; a remaining cause fails sooner.
    private static let probation = Duration.seconds(5)

    /// Retries until the body succeeds.
    ///
    /// - Throws: `CancellationError`, and errors that no retry can fix.
    func open<Value>(_ body: () async throws -> Value) async throws -> Value {
        var backoff = Backoff(RetryPolicy(delays: Self.pauses))
        var logged: String?
        while true {
            do {
                return try await body()
            } catch {
                try Task.checkCancellation()
                try await rest(&backoff, &logged, error)
            }
        }
    }

    /// Runs a body that lasts until it is cancelled, and restarts it when it fails.
    ///
    /// - Throws: `CancellationError`, and errors that no retry can fix.
    func keep(_ body: () async throws -> Void) async throws {
        var backoff = Backoff(RetryPolicy(delays: Self.pauses))
        var logged: String?
        while true {
            let start = ContinuousClock.now
            if logged == nil { condition.setReady() }
            let probation = Task { [condition] in
                try await Task.sleep(for: Self.probation)
                condition.setReady()
            }
            let outcome = await Result.capturing { try await body() }
            probation.cancel()
            // It must not set the condition after this.
            _ = await probation.result
            do {
                return try outcome.get()
            } catch {
                try Task.checkCancellation()
                // A body that ran for a while is restarted soon.
                if ContinuousClock.now - start > Self.pauses.upperBound {
                    backoff.reset()
                    logged = nil
                }
                try await rest(&backoff, &logged, error)
            }
        }
    }

    private func rest(_ backoff: inout Backoff, _ logged: inout String?, _ error: any Error) async throws {
        if Self.isFinal(error) { throw error }
        let reason = "\(error)"
        condition.setUnready(reason)
        if logged != reason {
            logger.error("\(what) failed and is tried again", error: error)
            logged = reason
        }
        try await backoff.pause()
    }

    /// Whether the log has another epoch than the configured one: retrying could mix their records.
    private static func isFinal(_ error: any Error) -> Bool {
        guard let error = error as? ControlError else { return false }
        return if case .noHistory = error { false } else { true }
    }
}
