import JSONText
import LoadTools

/// What was measured, on what, and with what result.
struct Report: Sendable {
    struct Entry: Sendable {
        let name: String
        let title: String
        let result: FigureResult
    }

    let version: String
    let scale: Scale
    let isRelease: Bool
    let processors: Int
    let load: String
    var entries: [Entry] = []

    /// Whether every count is right; times are not judged.
    var isSound: Bool { entries.allSatisfy { $0.result.checks.allSatisfy { $0.expected == $0.found } } }

    /// The report as JSON; docs/operations.md explains the figures.
    func json() -> [UInt8] {
        var writer = JSONWriter(capacity: 16 << 10)
        writer.object { writer in
            writer.name("weir")
            writer.value(version)
            writer.name("build")
            writer.value(isRelease ? "release" : "debug")
            writer.name("scale")
            writer.value(scale.rawValue)
            writer.name("processors")
            writer.value(processors)
            writer.name("loadAverages")
            writer.value(load)
            writer.name("figures")
            writer.array { writer in
                for entry in entries { Self.write(entry, to: &writer) }
            }
        }
        return writer.take() + [UInt8(ascii: "\n")]
    }

    private static func write(_ entry: Entry, to writer: inout JSONWriter) {
        writer.object { writer in
            writer.name("name")
            writer.value(entry.name)
            writer.name("title")
            writer.value(entry.title)
            writer.name("seconds")
            writer.value(rounded(entry.result.seconds))
            writer.name("othersShare")
            writer.value(rounded(entry.result.othersShare))
            writer.name("measures")
            writer.array { writer in
                for measure in entry.result.measures { write(measure, to: &writer) }
            }
            writer.name("checks")
            writer.array { writer in
                for check in entry.result.checks {
                    writer.object { writer in
                        writer.name("name")
                        writer.value(check.name)
                        writer.name("expected")
                        writer.value(check.expected)
                        writer.name("found")
                        writer.value(check.found)
                    }
                }
            }
        }
    }

    private static func write(_ measure: Measure, to writer: inout JSONWriter) {
        writer.object { writer in
            writer.name("name")
            writer.value(measure.name)
            writer.name("unit")
            writer.value(measure.unit)
            writer.name("value")
            writer.value(rounded(measure.value))
            if let spread = measure.spread {
                writer.name("low")
                writer.value(rounded(spread.lowerBound))
                writer.name("high")
                writer.value(rounded(spread.upperBound))
            }
            if let target = measure.target {
                writer.name(target.isFloor ? "atLeast" : "atMost")
                writer.value(rounded(target.limit))
                writer.name("isMet")
                writer.value(target.isMet(by: measure.value))
            }
            if let aim = measure.aim {
                writer.name("aim")
                writer.value(rounded(aim))
            }
        }
    }

    /// Six digits are more than any measurement is good for.
    private static func rounded(_ value: Double) -> Double { (value * 1e6).rounded() / 1e6 }
}

extension Report {
    /// The report as text: a block for each figure, a line for each number.
    func table() -> String {
        var text = "weir \(version), \(isRelease ? "release" : "debug") build, scale \(scale.rawValue), "
        text += "\(processors) processors, load averages \(load)\n"
        for entry in entries {
            text += "\n\(entry.name): \(entry.title)\n"
            text += "  took \(Self.short(entry.result.seconds)) s; "
            text += "other processes had \(Int((entry.result.othersShare * 100).rounded())) % of the machine\n"
            for measure in entry.result.measures { text += Self.line(measure) }
            for check in entry.result.checks where check.expected != check.found {
                text += "  WRONG: \(check.name): \(check.found), not \(check.expected)\n"
            }
        }
        return text
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

    /// Significant digits: whole numbers from 100 on, else three digits.
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
