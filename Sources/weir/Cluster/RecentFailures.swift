import Synchronization

/// What kept partitions from being worked on of late, for the readiness of the process.
///
/// A failure counts for a while, since nobody tells when what failed has passed; it comes again sooner when it has not.
final class RecentFailures: Sendable {
    private struct Failure {
        let reason: String
        let time: ContinuousClock.Instant
    }

    private let memory: Duration
    /// One for each partition at most.
    private let failures = Mutex<[Int: Failure]>([:])

    /// - Parameter memory: for how long a failure counts; longer than the pause after which what failed is tried again.
    init(memory: Duration) { self.memory = memory }

    func note(_ partition: Int, _ error: any Error) {
        failures.withLock { $0[partition] = Failure(reason: "\(error)", time: .now) }
    }

    /// What failed, in words for an operator; `nil` where nothing did.
    var reason: String? {
        let now = ContinuousClock.now
        return failures.withLock { failures in
            failures = failures.filter { now - $0.value.time < memory }
            guard let first = failures.min(by: { $0.key < $1.key }) else { return nil }
            let others = failures.count > 1 ? ", and \(failures.count - 1) other partitions" : ""
            return "partition \(first.key)\(others): \(first.value.reason)"
        }
    }
}
