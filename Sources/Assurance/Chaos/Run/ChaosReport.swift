/// What a run did, and what is wrong.
struct ChaosReport: Sendable {
    let seed: UInt64
    /// Changes and batches that were acknowledged, each once.
    let changes: Int
    let batches: Int
    /// Results in `ordered`, each once.
    let ordered: Int
    /// How often the issuer of the tokens began to sign with another key.
    let rotations: Int
    /// Devices that were revoked.
    let revoked: Int
    /// How many seconds after the revocation one of them still sent a request that was accepted.
    let refusedAfter: Double
    let rows: Int
    /// Records that repeat an earlier one.
    let repeats: Int
    /// Until the faults and the writing ended.
    let seconds: Double
    /// Until everything was ready and drained after the last fault.
    let healing: Double
    /// By target and kind.
    let faults: [String: Int]
    /// Processes that ended by themselves, or not with 0.
    let exits: [String]
    let batchWaits: WaitLog.Summary
    let pullWaits: WaitLog.Summary
    /// Where processes were killed in turn.
    let waitsByFault: [WaitLog.Caused]
    let findings: [Finding]
    let totalFindings: Int

    var isSound: Bool { totalFindings == 0 }

    func count(_ kind: Finding.Kind) -> Int { findings.count { $0.kind == kind } }

    /// The report for people.
    func text() -> String {
        var lines = [
            "seed \(seed): \(changes) changes in \(batches) batches in \(Self.round(seconds)) s; "
                + "\(faults.values.reduce(0, +)) faults; healed \(Self.round(healing)) s after the last",
            "ordered: \(ordered) results, \(rows) rows, \(repeats) repeated records",
            "tokens: \(rotations) changes of keys; \(revoked) devices revoked under load, the last request accepted "
                + "\(Self.round(refusedAfter)) s later",
            "faults:",
        ]
        lines += faults.sorted { $0.key < $1.key }.map { "  \($0.key): \($0.value)" }
        for exit in exits.prefix(20) { lines.append("exit: \(exit)") }
        lines += Self.lines("batches, from the first sending to the outcome", batchWaits)
        lines += Self.lines("pulls, from the first attempt to the answer", pullWaits)
        if !waitsByFault.isEmpty { lines.append("the longest waits from each fault to the next:") }
        lines += waitsByFault.map {
            "  \($0.fault), for \(Self.round($0.lasted)) s: batches \(Self.round($0.batch)) s, pulls \(Self.round($0.pull)) s"
        }
        let kinds = Finding.Kind.allCases.map { "\(count($0)) \($0.rawValue)" }
        lines.append("judged: " + kinds.joined(separator: ", "))
        lines.append(isSound ? "every judgment held" : "\(totalFindings) findings:")
        lines += findings.prefix(20).map { "  \($0.kind.rawValue): \($0.text)" }
        return lines.joined(separator: "\n")
    }

    private static func lines(_ title: String, _ waits: WaitLog.Summary) -> [String] {
        ["waits of \(waits.count) \(title): p50 \(round(waits.p50)) s, p99 \(round(waits.p99)) s; the longest:"]
            + waits.longest.map { wait in
                let causes = wait.faults.isEmpty ? "no fault" : wait.faults.prefix(6).joined(separator: ", ")
                return "  \(round(wait.seconds)) s, \(wait.who); faults then: \(causes)"
            }
    }

    private static func round(_ seconds: Double) -> String {
        let milliseconds = Int(seconds * 1000)
        return "\(milliseconds / 1000).\(String(milliseconds % 1000 + 1000).dropFirst())"
    }
}
