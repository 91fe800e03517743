import Commands
import Foundation
import Synchronization

/// What is shown while a demonstration runs, on standard error: redrawn on a terminal, a line now and then elsewhere.
final class DemoView: Sendable {
    struct Line: Sendable {
        let name: String
        let isOnline: Bool
        let phase: String
        let pending: Int
        let rows: Int
        let error: String?
    }

    struct Snapshot: Sendable {
        let lines: [Line]
        let left: Int
        let edits: Int
        let head: Int64
        let latency: String
    }

    /// The size of a terminal, in characters.
    struct Size: Sendable {
        let columns: Int
        let rows: Int

        /// That of standard error; of a terminal that does not say it, the usual one.
        static var current: Size {
            var size = winsize()
            let isKnown = ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 && size.ws_row > 0
            return isKnown ? Size(columns: Int(size.ws_col), rows: Int(size.ws_row)) : Size(columns: 80, rows: 24)
        }
    }

    static let isTerminal = isatty(STDERR_FILENO) == 1
    /// How often something is shown.
    static var interval: Duration { isTerminal ? .milliseconds(500) : .seconds(5) }

    private let drawnLines = Mutex(0)

    func show(_ snapshot: Snapshot) {
        Output.complain(Self.isTerminal ? redraw(snapshot, on: .current) : Self.summary(snapshot))
    }

    /// What replaces the lines that were drawn before.
    func redraw(_ snapshot: Snapshot, on size: Size) -> String {
        let text = Self.screen(snapshot, on: size)
        let above = drawnLines.withLock { drawn in
            defer { drawn = text.count }
            return drawn
        }
        // Up to where it began, and nothing below that.
        return (above > 0 ? "\u{1B}[\(above)A\u{1B}[J" : "") + text.map { "\($0)\n" }.joined()
    }

    /// One line.
    static func summary(_ snapshot: Snapshot) -> String {
        let online = snapshot.lines.count { $0.isOnline }
        let pending = snapshot.lines.map(\.pending).reduce(0, +)
        let rows = snapshot.lines.map(\.rows)
        return "\(snapshot.left) s left: \(online) of \(snapshot.lines.count) devices online, \(pending) rows pending, "
            + "\(rows.min() ?? 0)-\(rows.max() ?? 0) rows, \(snapshot.edits) edits, head \(snapshot.head), "
            + "latency \(snapshot.latency)"
    }

    /// Lines of which none is wider than the terminal and which all fit, since the cursor moves up by their number.
    static func screen(_ snapshot: Snapshot, on size: Size) -> [String] {
        let most = snapshot.lines.count + 3 > size.rows ? max(1, size.rows - 4) : snapshot.lines.count
        let width = snapshot.lines.map(\.name.count).max() ?? 0
        let lines = snapshot.lines.prefix(most).map { line in
            let name = line.name + String(repeating: " ", count: width - line.name.count) + "  "
            let state = line.isOnline ? "online " : "offline"
            let reason = (line.error ?? line.phase).split(whereSeparator: \.isNewline).joined(separator: " ")
            let rest = "  pending \(padded(line.pending, 5))  rows \(padded(line.rows, 5))  \(reason.prefix(60))"
            let color = line.isOnline ? 32 : 31
            return name + "\u{1B}[\(color)m\(state)\u{1B}[0m"
                + rest.prefix(max(0, size.columns - name.count - state.count))
        }
        let left = snapshot.lines.count - lines.count
        return [
            "\(snapshot.left) s left, \(snapshot.edits) edits, head of the stream \(snapshot.head)",
            "from write to seen on another device: \(snapshot.latency)",
        ].map { String($0.prefix(size.columns)) } + lines + (left > 0 ? ["and \(left) more devices"] : [])
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let text = "\(number)"
        return String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
