/// A number that was measured, with what it should be.
struct Measure: Sendable {
    /// What a number should be.
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
    /// What it should come to one day.
    var aim: Double?

    /// A number that was measured once or follows from others.
    init(_ name: String, _ value: Double, _ unit: String = "", target: Target? = nil, aim: Double? = nil) {
        self.name = name
        self.unit = unit
        self.value = value
        self.target = target
        self.aim = aim
    }

    /// The median of repetitions.
    init(_ name: String, _ samples: Samples, _ unit: String, target: Target? = nil, aim: Double? = nil) {
        self.init(name, samples.median, unit, target: target, aim: aim)
        spread = samples.low...samples.high
    }
}

/// The result of one figure.
struct FigureResult: Sendable {
    /// A line of a profile: what, and how much of the CPU.
    struct Share: Sendable {
        let name: String
        let microseconds: Double
    }

    var measures: [Measure]
    /// Counts that must be right, or nothing measured is worth anything: what, expected, found.
    var checks: [(name: String, expected: Int, found: Int)] = []
    /// The server's CPU in microseconds a change by what its threads are for, largest first.
    var threads: [Share] = []
    /// The same by hop, where samples could be taken.
    var hops: [Share] = []
    /// The share of the machine that other processes had meanwhile.
    var othersShare = 0.0
    var seconds = 0.0
}
