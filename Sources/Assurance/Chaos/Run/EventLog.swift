import Glibc
import LoadTools
import Synchronization

/// What a run did, by time: a line for each event, in a file.
final class EventLog: Sendable {
    let path: String
    private let began = SystemCall.nanoseconds()
    private let file: Mutex<Int32>

    init(_ path: String) throws(LoadFailure) {
        self.path = path
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw .system("opening \(path)", errno) }
        file = Mutex(descriptor)
    }

    deinit { file.withLock { _ = close($0) } }

    /// Writes a line: the seconds since the start, and a text.
    func record(_ text: String) {
        let line = "\(Self.seconds(SystemCall.nanoseconds() - began)) \(text)\n"
        file.withLock { descriptor in
            // A full disk ends the run elsewhere.
            _ = line.utf8.withContiguousStorageIfAvailable { write(descriptor, $0.baseAddress, $0.count) }
        }
    }

    /// The lines that contain a text, and between the first and the last of them those that contain another one.
    func trace(of text: String, with other: String) throws(LoadFailure) -> [String] {
        let lines = try SystemCall.contents(of: path).split(separator: "\n")
        let matches = { (line: Substring) in line.contains(text + ":") || line.hasSuffix(text) }
        guard let first = lines.firstIndex(where: matches), let last = lines.lastIndex(where: matches) else {
            return []
        }
        return lines[first...last].filter { matches($0) || $0.contains(other) }.map(String.init)
    }

    static func seconds(_ nanoseconds: Int64) -> String {
        let milliseconds = nanoseconds / 1_000_000
        let rest = String(milliseconds % 1000 + 1000).dropFirst()
        let whole = String(milliseconds / 1000)
        return String(repeating: " ", count: max(0, 6 - whole.count)) + "\(whole).\(rest)"
    }
}
