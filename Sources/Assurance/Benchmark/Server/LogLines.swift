import Glibc
import LoadTools
import Synchronization

/// The log of a process, read to its end so that the process never blocks on a full pipe.
final class LogLines: Sendable {
    /// Lines that are kept to explain a failure.
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

    /// Reads up to a line that contains a text and an address; returns its port, or `nil` where the process ended before.
    func readPort(containing text: String) -> UInt16? {
        while true {
            if let port = newest.lazy.filter({ $0.contains(text) }).compactMap(Self.port).first { return port }
            guard read() else { return nil }
        }
    }

    /// Reads until `count` lines contain a text, fewer than are kept; `nil` where the process ended before.
    func read(_ count: Int, containing text: String) -> [String]? {
        while true {
            let found = newest.filter { $0.contains(text) }
            if found.count >= count { return found }
            guard read() else { return nil }
        }
    }

    /// Reads the rest on a thread that ends with the process.
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
        guard let found = bytes.firstRange(of: #""address":"127.0.0.1:"#, from: 0) else { return nil }
        return UInt16(exactly: bytes.number(from: found.upperBound))
    }
}
