import AsyncPrimitives
import Synchronization

/// Whether the process is ready: a set of named conditions and probes, all of which must be ready.
///
/// Services add conditions and set them; the operations port reads `probedReport`. Lag does not affect readiness.
package final class Readiness: Sendable {
    /// The state of every condition at one moment.
    package struct Report: Sendable, Hashable {
        package struct Entry: Sendable, Hashable {
            package let name: String

            /// `nil` if it is ready.
            package let unreadyReason: String?
        }

        /// In the order in which they were added.
        package let conditions: [Entry]

        package var isReady: Bool { conditions.allSatisfy { $0.unreadyReason == nil } }
    }

    // Both are bounded by the services of the process.
    private let conditions = Mutex<[ReadinessCondition]>([])
    private let probes = Mutex<[ReadinessProbe]>([])

    package init() {}

    /// Adds a condition, which is not ready at first; traps if the name is used already.
    package func addCondition(_ name: String, unready reason: String = "starting") -> ReadinessCondition {
        conditions.withLock { conditions in
            precondition(!conditions.contains { $0.name == name }, "the readiness condition \(name) exists already")
            let condition = ReadinessCondition(name, unready: reason)
            conditions.append(condition)
            return condition
        }
    }

    /// Adds a probe, which runs with each ``probedReport()``; traps if the name is used already.
    ///
    /// - Parameters:
    ///   - limit: how long the probe may take before the process counts as not ready; the probe continues.
    ///   - probe: returns why the process is not ready, for an operator; `nil` if it is ready.
    package func addProbe(
        _ name: String, limit: Duration = .seconds(2), _ probe: @escaping @Sendable () async -> String?
    ) {
        probes.withLock { probes in
            precondition(!probes.contains { $0.name == name }, "the readiness probe \(name) exists already")
            probes.append(ReadinessProbe(name, limit: limit, probe))
        }
    }

    /// The state of all conditions and the results of all probes.
    package func probedReport() async -> Report {
        let conditions = report.conditions
        let probes = probes.withLock(\.self)
        let reasons = await withTaskGroup(of: (Int, String?).self) { group in
            for (index, probe) in probes.enumerated() { group.addTask { (index, await probe.reason()) } }
            var reasons = [String?](repeating: nil, count: probes.count)
            for await (index, reason) in group { reasons[index] = reason }
            return reasons
        }
        return Report(
            conditions: conditions
                + zip(probes, reasons).map { Report.Entry(name: $0.name, unreadyReason: $1) })
    }

    /// The state of all conditions.
    package var report: Report {
        Report(
            conditions: conditions.withLock(\.self).map {
                Report.Entry(name: $0.name, unreadyReason: $0.unreadyReason)
            })
    }
}

package final class ReadinessCondition: Sendable {
    /// For example "postgres" or "ordering/3".
    package let name: String

    private let reason: Mutex<String?>
    private let gate = Gate()

    fileprivate init(_ name: String, unready reason: String) {
        self.name = name
        self.reason = Mutex(reason)
    }

    /// `nil` if it is ready.
    package var unreadyReason: String? { reason.withLock(\.self) }

    package func setReady() {
        reason.withLock { reason in
            reason = nil
            gate.open()
        }
    }

    /// - Parameter why: the reason, for an operator.
    package func setUnready(_ why: String) {
        reason.withLock { reason in
            reason = why
            gate.close()
        }
    }

    /// Waits until the condition is ready; the usual implementation of `Service.untilReady`.
    ///
    /// - Throws: `CancellationError` if the task is cancelled first.
    package func untilReady() async throws(CancellationError) {
        try await gate.wait()
    }
}
