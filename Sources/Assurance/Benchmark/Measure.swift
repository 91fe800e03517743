/// A number that was measured, with its target.
struct Measure: Sendable {
    enum Target: Sendable {
        case atLeast(Double)
        case atMost(Double)

        var limit: Double {
            switch self {
            case .atLeast(let limit), .atMost(let limit): limit
            }
        }

        var isFloor: Bool {
            if case .atLeast = self { true } else { false }
        }

        func isMet(by value: Double) -> Bool {
            switch self {
            case .atLeast(let limit): value >= limit
            case .atMost(let limit): value <= limit
            }
        }
    }

    /// The name in the JSON; stable.
    let name: String
    /// The unit as the table shows it; empty for a ratio.
    let unit: String
    /// The median of the repetitions, or the number itself.
    let value: Double
    /// The lowest and the highest of the repetitions.
    var spread: ClosedRange<Double>?
    var target: Target?
    /// A better target, for later.
    var aim: Double?

    init(_ name: String, _ value: Double, _ unit: String = "", target: Target? = nil, aim: Double? = nil) {
        self.name = name
        self.unit = unit
        self.value = value
        self.target = target
        self.aim = aim
    }

    init(_ name: String, _ samples: Samples, _ unit: String, target: Target? = nil, aim: Double? = nil) {
        self.init(name, samples.median, unit, target: target, aim: aim)
        spread = samples.low...samples.high
    }
}

/// Numbers of the same kind, of each repetition or each request.
struct Samples: Sendable {
    private(set) var sorted: [Double]

    init(_ values: some Sequence<Double>) {
        sorted = values.sorted()
        precondition(!sorted.isEmpty, "a distribution has at least one number")
    }

    var median: Double { quantile(0.5) }
    var low: Double { sorted[0] }
    var high: Double { sorted[sorted.count - 1] }

    /// The smallest number that a share of the numbers, from 0 to 1, is not above.
    func quantile(_ share: Double) -> Double {
        let index = (share * Double(sorted.count)).rounded(.up) - 1
        return sorted[min(sorted.count - 1, max(0, Int(index)))]
    }
}

/// What one repetition of a figure did, and what its baseline did under the same conditions.
struct Repetition: Sendable {
    /// How many changes, rows or pulls.
    var count: Int
    let seconds: Double
    let usage: Usage
    /// What the baseline did per second.
    var baseline = 0.0
    /// Resident memory of the server at the end in bytes.
    var memory = 0

    var rate: Double { Double(count) / seconds }

    func microseconds(_ nanoseconds: Int64) -> Double { Double(nanoseconds) / 1000 / Double(count) }
}

/// The repetitions of a figure, and the measures that figures have in common.
struct Repetitions: Sendable {
    /// What is counted, in the singular: `change`.
    let item: String
    let all: [Repetition]

    func samples(_ value: (Repetition) -> Double) -> Samples { Samples(all.map(value)) }

    func rate(target: Measure.Target? = nil, aim: Double? = nil) -> Measure {
        Measure("\(item)s_per_second", samples(\.rate), "/s", target: target, aim: aim)
    }

    /// The baseline's rate, and the ratio to it.
    func baseline(_ name: String, target: Measure.Target? = nil, aim: Double? = nil) -> [Measure] {
        [
            Measure("\(name)_per_second", samples(\.baseline), "/s"),
            Measure("ratio_to_\(name)", samples { $0.rate / $0.baseline }, "", target: target, aim: aim),
        ]
    }

    func cpu(_ name: String, _ nanoseconds: (Usage) -> Int64) -> Measure {
        Measure("\(name)_cpu_per_\(item)", samples { $0.microseconds(nanoseconds($0.usage)) }, "us")
    }

    /// CPU of brokers and database; none where they run on other machines.
    func clusterCPU(
        _ names: [(String, KeyPath<Usage, Int64?>)] = [
            ("brokers", \.brokersCPU), ("database", \.databaseCPU),
        ]
    ) -> [Measure] {
        names.compactMap { name, path in
            let known = all.compactMap { repetition in
                repetition.usage[keyPath: path].map(repetition.microseconds)
            }
            return known.isEmpty ? nil : Measure("\(name)_cpu_per_\(item)", Samples(known), "us")
        }
    }

    func memory(_ name: String) -> Measure {
        Measure("\(name)_memory", samples { Double($0.memory) / 1e6 }, "MB")
    }

    var othersShare: Double { all.map(\.usage.othersShare).max() ?? 0 }
}

/// A number of rows, or the like, that must be exact, or the figure means nothing.
struct Check: Sendable {
    let name: String
    let expected: Int
    let found: Int
}

struct FigureResult: Sendable {
    var measures: [Measure]
    var checks: [Check] = []
    /// The share of the machine that other processes had meanwhile, from 0 to 1.
    var othersShare = 0.0
    var seconds = 0.0
}
