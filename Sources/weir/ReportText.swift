import Commands
import Verification

/// Reports on standard output.
enum ReportText {
    /// Writes what was found, and what it comes to.
    ///
    /// - Returns: whether anything differs, or could not be said.
    static func write(_ reports: [Report]) -> Conclusion {
        var outcome = Conclusion.equal
        for report in reports {
            Output.write(report.partition.map { "partition \($0)" } ?? "all partitions")
            for line in report.lines {
                let subject = line.subject.padded(to: 9)
                switch line.finding {
                case .equal(let text): Output.write("  \(subject) equal: \(text)")
                case .different(let first, let count):
                    let more = count > 1 ? " (and \(count - 1) more)" : ""
                    Output.write("  \(subject) DIFFERENT: \(first)\(more)")
                    outcome = .different
                case .unknown(let text):
                    Output.write("  \(subject) cannot say: \(text)")
                    if outcome == .equal { outcome = .unknown }
                }
            }
        }
        return outcome
    }
}

/// What all reports together come to.
enum Conclusion {
    case equal, different, unknown
}

extension String {
    fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
