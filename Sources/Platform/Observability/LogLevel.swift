/// How much a log line matters, from `trace` to `critical`.
package enum LogLevel: String, Sendable, Hashable, CaseIterable, Comparable {
    /// Every step, for following one thing through the code.
    case trace

    /// What helps to find a fault.
    case debug

    /// What an operator may want to know: started, assigned, stopped.
    case info

    /// Normal and worth noticing.
    case notice

    /// Something is not as it should be, and the program copes.
    case warning

    /// Something failed that someone asked for.
    case error

    /// The process cannot go on, or data is at risk.
    case critical

    private var rank: Int {
        switch self {
        case .trace: 0
        case .debug: 1
        case .info: 2
        case .notice: 3
        case .warning: 4
        case .error: 5
        case .critical: 6
        }
    }

    /// Ordered by weight.
    package static func < (left: LogLevel, right: LogLevel) -> Bool {
        left.rank < right.rank
    }
}
