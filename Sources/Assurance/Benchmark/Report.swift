import JSONText

/// What was measured, on what, and with what result.
struct Report: Sendable {
    struct Entry: Sendable {
        let name: String
        let title: String
        let result: FigureResult
    }

    let version: String
    let scale: Scale
    /// Whether the program was built for speed.
    let isRelease: Bool
    let processors: Int
    /// The load averages at the beginning.
    let load: String
    var entries: [Entry] = []

    /// Whether every count is right.
    var isSound: Bool { entries.allSatisfy { $0.result.checks.allSatisfy { $0.expected == $0.found } } }

    /// The report as JSON; docs/operations.md says what the fields are.
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
            writer.name("threads")
            write(entry.result.threads, to: &writer)
            writer.name("hops")
            write(entry.result.hops, to: &writer)
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

    private static func write(_ profile: [FigureResult.Share], to writer: inout JSONWriter) {
        writer.array { writer in
            for share in profile {
                writer.object { writer in
                    writer.name("name")
                    writer.value(share.name)
                    writer.name("microseconds")
                    writer.value(rounded(share.microseconds))
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
