import Synchronization

/// The failures that keep partitions from being worked on, for the readiness of the process.
///
/// A failure is forgotten once the work on its partition has got further. An attempt that has no record to work on does not show
/// that its cause is gone, so a failure counts at most until the next attempt has had time to fail again.
package final class PartitionFailures: Sendable {
    private struct Failure {
        let reason: String
        /// `nil`: when it is forgotten.
        let end: ContinuousClock.Instant?
    }

    /// How long an attempt may take until it fails for the same cause: longer than connecting may take.
    private static let attempt = Duration.seconds(15)

    /// The newest of each partition of each stage.
    private let failures = Mutex<[String: Failure]>([:])

    package init() {}

    /// Records a failure of a partition.
    ///
    /// - Parameters:
    ///   - name: the stage and the partition.
    ///   - pause: the time until the next attempt; `nil` where that waits for an event, after which the failure is forgotten.
    package func record(_ name: String, _ error: any Error, pause: Duration?) {
        let failure = Failure(reason: "\(error)", end: pause.map { .now + $0 + Self.attempt })
        failures.withLock { $0[name] = failure }
    }

    /// Forgets the failure of a partition whose cause is gone, or that another process works on from now on.
    package func forget(_ name: String) { failures.withLock { _ = $0.removeValue(forKey: name) } }

    /// What failed, in words for an operator; `nil` where nothing did.
    package var reason: String? {
        let now = ContinuousClock.now
        return failures.withLock { failures in
            failures = failures.filter { $0.value.end.map { now < $0 } ?? true }
            guard let first = failures.min(by: { $0.key < $1.key }) else { return nil }
            let others = failures.count > 1 ? ", and \(failures.count - 1) other partitions" : ""
            return "\(first.key)\(others): \(first.value.reason)"
        }
    }
}
