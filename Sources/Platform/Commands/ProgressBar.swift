import Glibc
import Synchronization

/// The progress of a long command: a bar with rate and time left on a terminal, a line every ten seconds elsewhere.
///
/// `advance` may be called from any thread and costs an addition where nothing is due to be drawn; a terminal is drawn at
/// most ten times a second.
package final class ProgressBar: Sendable {
    package struct Output: Sendable {
        let isTerminal: Bool
        let write: @Sendable (String) -> Void

        package init(isTerminal: Bool, write: @escaping @Sendable (String) -> Void) {
            self.isTerminal = isTerminal
            self.write = write
        }

        /// Standard error, so that what a command prints can be piped on.
        package static let standardError = Output(isTerminal: isatty(STDERR_FILENO) == 1, write: writeToStandardError)
    }

    private struct State {
        var total: Int?
        var lastDrawn: Duration
        var lastLength = 0
        var isFinished = false
    }

    private let title: String
    private let unit: String
    private let output: Output
    private let elapsed: @Sendable () -> Duration
    private let done = Atomic<Int>(0)
    /// In milliseconds since the start; read without the lock.
    private let nextDue: Atomic<Int>
    private let state: Mutex<State>

    /// - Parameters:
    ///   - total: `nil` where it is not known yet.
    ///   - unit: what is counted, in the plural.
    ///   - elapsed: the time since the start, for tests.
    package init(
        _ title: String, total: Int?, unit: String, output: Output = .standardError,
        elapsed: (@Sendable () -> Duration)? = nil
    ) {
        precondition(total ?? 0 >= 0, "a total is not negative")
        self.title = title
        self.unit = unit
        self.output = output
        let start = ContinuousClock.now
        self.elapsed = elapsed ?? { ContinuousClock.now - start }
        nextDue = Atomic(output.isTerminal ? 100 : 10_000)
        state = Mutex(State(total: total, lastDrawn: .zero))
    }

    package func advance(by count: Int = 1) {
        done.wrappingAdd(count, ordering: .relaxed)
        let now = elapsed()
        guard now.milliseconds >= nextDue.load(ordering: .relaxed) else { return }
        state.withLock { state in
            guard !state.isFinished, now.milliseconds >= nextDue.load(ordering: .relaxed) else { return }
            nextDue.store(now.milliseconds + (output.isTerminal ? 100 : 10_000), ordering: .relaxed)
            draw(&state, at: now)
        }
    }

    /// Sets the total, where that becomes known later.
    package func expect(_ total: Int) {
        state.withLock { $0.total = total }
    }

    /// Draws the last state and ends the line; later calls draw nothing.
    package func finish() {
        state.withLock { state in
            guard !state.isFinished else { return }
            draw(&state, at: elapsed())
            if output.isTerminal { output.write("\n") }
            state.isFinished = true
        }
    }

    private func draw(_ state: inout State, at now: Duration) {
        let line = line(done: done.load(ordering: .relaxed), total: state.total, elapsed: now)
        if output.isTerminal {
            let padding = String(repeating: " ", count: max(0, state.lastLength - line.count))
            output.write("\r" + line + padding)
            state.lastLength = line.count
        } else {
            output.write(line + "\n")
        }
    }

    private func line(done: Int, total: Int?, elapsed: Duration) -> String {
        let milliseconds = max(1, elapsed.milliseconds)
        let rate = Double(done) / (Double(milliseconds) / 1000)
        var line = title
        if let total {
            let fraction = total == 0 ? 1 : min(1, Double(done) / Double(total))
            let width = 24
            let filled = Int(fraction * Double(width))
            line += " [\(String(repeating: "=", count: filled))\(String(repeating: " ", count: width - filled))]"
            line += " \(Int(fraction * 100)) %, \(done) of \(total) \(unit)"
        } else {
            line += ": \(done) \(unit)"
        }
        line += ", \(Self.short(rate))/s"
        if let total, done > 0, done < total {
            line += ", \(Self.time(seconds: Int((Double(total - done) / rate).rounded(.up)))) left"
        } else {
            line += ", \(Self.time(seconds: milliseconds / 1000))"
        }
        return line
    }

    private static func short(_ rate: Double) -> String {
        switch rate {
        case ..<10: "\((rate * 10).rounded() / 10)"
        case ..<10_000: "\(Int(rate.rounded()))"
        case ..<10_000_000: "\(Int((rate / 1000).rounded()))k"
        default: "\(Int((rate / 1_000_000).rounded()))M"
        }
    }

    private static func time(seconds: Int) -> String {
        let (hours, rest) = seconds.quotientAndRemainder(dividingBy: 3600)
        let (minutes, seconds) = rest.quotientAndRemainder(dividingBy: 60)
        if hours > 0 { return "\(hours) h \(minutes) min" }
        return minutes > 0 ? "\(minutes) min \(seconds) s" : "\(seconds) s"
    }
}

extension Duration {
    fileprivate var milliseconds: Int {
        Int(components.seconds) * 1000 + Int(components.attoseconds / 1_000_000_000_000_000)
    }
}

private func writeToStandardError(_ text: String) {
    var text = text
    text.withUTF8 { bytes in
        // The command continues when its terminal is closed.
        _ = write(STDERR_FILENO, bytes.baseAddress, bytes.count)
    }
}
