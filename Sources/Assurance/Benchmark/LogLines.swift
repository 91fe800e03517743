import Glibc
import Synchronization

/// The log of a process: read to its end, so that the process never waits for its reader.
final class LogLines: Sendable {
    /// What is kept to explain a failure.
    private static let kept = 50

    private struct State {
        var lines: [String] = []
        var rest: [UInt8] = []
    }

    private let descriptor: Int32
    private let state = Mutex(State())

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    var newest: [String] { state.withLock { $0.lines } }

    /// Reads until a server says in some words where it listens; `nil` where it ended without.
    func readPort(saying words: String) -> UInt16? {
        while true {
            if let port = newest.lazy.filter({ $0.contains(words) }).compactMap(Self.port).first { return port }
            guard read() else { return nil }
        }
    }

    /// Reads until so many lines have said some words, fewer than are kept; `nil` where the process ended without.
    func read(_ count: Int, saying words: String) -> [String]? {
        while true {
            let found = newest.filter { $0.contains(words) }
            if found.count >= count { return found }
            guard read() else { return nil }
        }
    }

    /// Reads what comes later on a thread that ends with the process.
    func readOn() {
        let held = Unmanaged.passRetained(self)
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { context in
                let lines = Unmanaged<LogLines>.fromOpaque(context!).takeRetainedValue()
                while lines.read() {}
                return nil
            }, held.toOpaque())
        guard code == 0 else { return held.release() }
        pthread_detach(thread)
    }

    private func read() -> Bool {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        if count < 0, errno == EINTR { return true }
        guard count > 0 else { return false }
        state.withLock { state in
            state.rest += bytes[..<count]
            while let end = state.rest.firstIndex(of: UInt8(ascii: "\n")) {
                state.lines.append(String(decoding: state.rest[..<end], as: UTF8.self))
                state.rest.removeSubrange(...end)
            }
            if state.lines.count > Self.kept { state.lines.removeFirst(state.lines.count - Self.kept) }
        }
        return true
    }

    private static func port(in line: String) -> UInt16? {
        let bytes = Array(line.utf8)
        guard let place = bytes.firstRange(of: #""address":"127.0.0.1:"#, from: 0) else { return nil }
        return UInt16(exactly: bytes.number(from: place.upperBound))
    }
}
