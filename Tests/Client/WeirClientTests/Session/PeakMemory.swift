import Foundation

/// The most memory that the process has had, where the system says it: on Linux.
enum PeakMemory {
    /// Forgets the peak until now.
    ///
    /// - Returns: what the process has, in bytes; `nil` where it is not known.
    static func begin() -> Int? {
        guard let file = FileHandle(forWritingAtPath: "/proc/self/clear_refs") else { return nil }
        do {
            try file.write(contentsOf: Data("5".utf8))
            try file.close()
        } catch {
            // Some containers permit no process to do so.
            return nil
        }
        return value("VmRSS:")
    }

    /// The peak since then.
    static var bytes: Int? { value("VmHWM:") }

    private static func value(_ name: String) -> Int? {
        guard let status = FileManager.default.contents(atPath: "/proc/self/status") else { return nil }
        let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix(name) }
        return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }.map { $0 * 1024 }
    }
}
