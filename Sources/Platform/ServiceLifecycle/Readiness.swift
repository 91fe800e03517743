import AsyncPrimitives
import Synchronization

/// Whether the process can do its job: named conditions, each ready, or unready for a reason.
///
/// Services add conditions and set them; the operations port reads `report`. The process is ready when every condition
/// is; lag is no condition.
package final class Readiness: Sendable {
    /// The state of every condition at one moment.
    package struct Report: Sendable, Hashable {
        /// A condition's state.
        package struct Entry: Sendable, Hashable {
            /// The condition's name.
            package let name: String

            /// Why it is not ready; `nil` where it is.
            package let unreadyReason: String?
        }

        /// The conditions in the order in which they were added.
        package let conditions: [Entry]

        /// Whether every condition is ready.
        package var isReady: Bool { conditions.allSatisfy { $0.unreadyReason == nil } }
    }

    // Both grow with the services of the process alone.
    private let conditions = Mutex<[ReadinessCondition]>([])
    private let probes = Mutex<[ReadinessProbe]>([])

    /// Without conditions, the process is ready.
    package init() {}

    /// Adds a condition, unready at first; names differ, or it traps.
    package func addCondition(_ name: String, unready reason: String = "starting") -> ReadinessCondition {
        conditions.withLock { conditions in
            precondition(!conditions.contains { $0.name == name }, "\(name): there is such a condition already")
            let condition = ReadinessCondition(name, unready: reason)
            conditions.append(condition)
            return condition
        }
    }

    /// Adds a question that is put whenever ``probedReport()`` is asked for; names differ, or it traps.
    ///
    /// - Parameters:
    ///   - limit: how long an answer may take before the process counts as unready; the question goes on.
    ///   - ask: says why the process is not ready, in words for an operator; `nil` where it is.
    package func addProbe(
        _ name: String, limit: Duration = .seconds(2), _ ask: @escaping @Sendable () async -> String?
    ) {
        probes.withLock { probes in
            precondition(!probes.contains { $0.name == name }, "\(name): there is such a probe already")
            probes.append(ReadinessProbe(name, limit: limit, ask))
        }
    }

    /// The state of every condition, and the answers to all probes.
    package func probedReport() async -> Report {
        let conditions = report.conditions
        let probes = probes.withLock(\.self)
        let answers = await withTaskGroup(of: (Int, String?).self) { group in
            for (place, probe) in probes.enumerated() { group.addTask { (place, await probe.reason()) } }
            var answers = [String?](repeating: nil, count: probes.count)
            for await (place, reason) in group { answers[place] = reason }
            return answers
        }
        return Report(
            conditions: conditions
                + zip(probes, answers).map { Report.Entry(name: $0.name, unreadyReason: $1) })
    }

    /// The state of every condition.
    package var report: Report {
        Report(
            conditions: conditions.withLock(\.self).map {
                Report.Entry(name: $0.name, unreadyReason: $0.unreadyReason)
            })
    }
}

/// One condition of the process's readiness, set by the service that knows.
package final class ReadinessCondition: Sendable {
    /// What it is about: "postgres", "ordering/3".
    package let name: String

    private let reason: Mutex<String?>
    private let gate = Gate()

    fileprivate init(_ name: String, unready reason: String) {
        self.name = name
        self.reason = Mutex(reason)
    }

    /// Why it is not ready; `nil` where it is.
    package var unreadyReason: String? { reason.withLock(\.self) }

    /// Says that the condition holds.
    package func setReady() {
        reason.withLock { reason in
            reason = nil
            gate.open()
        }
    }

    /// Says that the condition does not hold, and why, in words for an operator.
    package func setUnready(_ why: String) {
        reason.withLock { reason in
            reason = why
            gate.close()
        }
    }

    /// Waits until the condition holds; what `Service.untilReady` mostly does.
    ///
    /// - Throws: `CancellationError` where the task is cancelled before.
    package func untilReady() async throws(CancellationError) {
        try await gate.wait()
    }
}
