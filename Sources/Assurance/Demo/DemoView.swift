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

    static let isTerminal = isatty(STDERR_FILENO) == 1
    /// How often something is shown.
    static var interval: Duration { isTerminal ? .milliseconds(500) : .seconds(5) }

    private let drawnLines = Mutex(0)

    func show(_ snapshot: Snapshot) {
        guard Self.isTerminal else { return Output.complain(Self.summary(snapshot)) }
        let text = Self.screen(snapshot)
        let above = drawnLines.withLock { drawn in
            defer { drawn = text.count }
            return drawn
        }
        // Up to where it began, and each line over the one before.
        Output.complain((above > 0 ? "\u{1B}[\(above)A" : "") + text.map { "\u{1B}[2K\($0)\n" }.joined())
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

    static func screen(_ snapshot: Snapshot) -> [String] {
        let width = snapshot.lines.map(\.name.count).max() ?? 0
        let lines = snapshot.lines.map { line in
            let name = line.name + String(repeating: " ", count: width - line.name.count)
            let state = line.isOnline ? "\u{1B}[32monline \u{1B}[0m" : "\u{1B}[31moffline\u{1B}[0m"
            let numbers = "pending \(padded(line.pending, 5))  rows \(padded(line.rows, 5))"
            return "\(name)  \(state)  \(numbers)  \((line.error ?? line.phase).prefix(60))"
        }
        return [
            "\(snapshot.left) s left, \(snapshot.edits) edits, head of the stream \(snapshot.head)",
            "from write to seen on another device: \(snapshot.latency)",
        ] + lines
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let text = "\(number)"
        return String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
