extension Report {
    /// The report for people: a block for each figure, a line for each number.
    func table() -> String {
        var text = "weir \(version), \(isRelease ? "release" : "debug") build, scale \(scale.rawValue), "
        text += "\(processors) processors, load averages \(load)\n"
        for entry in entries {
            text += "\n\(entry.name): \(entry.title)\n"
            text += "  took \(Self.short(entry.result.seconds)) s; "
            text += "other processes had \(Int((entry.result.othersShare * 100).rounded())) % of the machine\n"
            for measure in entry.result.measures { text += Self.line(measure) }
            text += Self.profile("threads", entry.result.threads) + Self.profile("hops", entry.result.hops)
            for check in entry.result.checks where check.expected != check.found {
                text += "  WRONG: \(check.name): \(check.found), not \(check.expected)\n"
            }
        }
        return text
    }

    private static func profile(_ kind: String, _ shares: [FigureResult.Share]) -> String {
        if shares.isEmpty { return "" }
        return shares.reduce("  server CPU by \(kind), us a change:\n") { text, share in
            text + "    \(padded(share.name, 30))\(padded(left: short(share.microseconds), 12))\n"
        }
    }

    private static func line(_ measure: Measure) -> String {
        var text = "  " + padded(measure.name, 32)
        text += padded(left: short(measure.value), 12) + " " + padded(measure.unit, 4)
        if let spread = measure.spread, spread.lowerBound < spread.upperBound {
            text += "  \(short(spread.lowerBound)) to \(short(spread.upperBound))"
        }
        if let target = measure.target {
            text += "  target \(target.isFloor ? "at least" : "at most") \(short(target.limit))"
            if let aim = measure.aim { text += ", aim \(short(aim))" }
            text += target.isMet(by: measure.value) ? ": met" : ": MISSED"
        }
        return text + "\n"
    }

    /// As many digits as say something: whole numbers from 100 on, else three digits.
    private static func short(_ value: Double) -> String {
        guard value.magnitude < 100 else { return "\(Int(value.rounded()))" }
        let places = value.magnitude < 0.1 ? 10_000.0 : value.magnitude < 10 ? 100 : 10
        return "\((value * places).rounded() / places)"
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }

    private static func padded(left text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
