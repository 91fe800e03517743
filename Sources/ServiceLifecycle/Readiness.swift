import Synchronization

/// Whether the process can do its job: named conditions, each ready, or unready for a reason.
///
/// Services add conditions and set them; the operations port reads `report`. The process is ready when every condition
/// is; lag is no condition.
public final class Readiness: Sendable {
    /// The state of every condition at one moment.
    public struct Report: Sendable, Hashable {
        /// A condition's state.
        public struct Entry: Sendable, Hashable {
            /// The condition's name.
            public let name: String

            /// Why it is not ready; `nil` where it is.
            public let unreadyReason: String?
        }

        /// The conditions in the order in which they were added.
        public let conditions: [Entry]

        /// Whether every condition is ready.
        public var isReady: Bool { conditions.allSatisfy { $0.unreadyReason == nil } }
    }

    // Grows with the services of the process alone.
    private let conditions = Mutex<[ReadinessCondition]>([])

    /// Without conditions, the process is ready.
    public init() {}

    /// Adds a condition, unready at first; names differ, or it traps.
    public func addCondition(_ name: String, unready reason: String = "starting") -> ReadinessCondition {
        conditions.withLock { conditions in
            precondition(!conditions.contains { $0.name == name }, "\(name): there is such a condition already")
            let condition = ReadinessCondition(name, unready: reason)
            conditions.append(condition)
            return condition
        }
    }

    /// The state of every condition.
    public var report: Report {
        Report(
            conditions: conditions.withLock(\.self).map {
                Report.Entry(name: $0.name, unreadyReason: $0.unreadyReason)
            })
    }
}

/// One condition of the process's readiness, set by the service that knows.
public final class ReadinessCondition: Sendable {
    /// What it is about: "postgres", "ordering/3".
    public let name: String

    private let reason: Mutex<String?>
    private let gate = Gate()

    fileprivate init(_ name: String, unready reason: String) {
        self.name = name
        self.reason = Mutex(reason)
    }

    /// Why it is not ready; `nil` where it is.
    public var unreadyReason: String? { reason.withLock(\.self) }

    /// Says that the condition holds.
    public func setReady() {
        reason.withLock { reason in
            reason = nil
            gate.open()
        }
    }

    /// Says that the condition does not hold, and why, in words for an operator.
    public func setUnready(_ why: String) {
        reason.withLock { reason in
            reason = why
            gate.close()
        }
    }

    /// Waits until the condition holds; what `Service.untilReady` mostly does.
    ///
    /// - Throws: `CancellationError` where the task is cancelled before.
    public func untilReady() async throws(CancellationError) {
        try await gate.wait()
    }
}
