import Foundation
import Synchronization

/// The log lines of a process as they arrive.
final class ProgramLines: Sendable {
    /// What a process listens for; the raw value is the key of the port in its log line.
    enum Listener: String, CaseIterable {
        case gateway = "address"
        case operations = "url"
    }

    private struct State {
        var rest = Data()
        var lines: [String] = []
        var hasEnded = false
        var ports: [Listener: UInt16] = [:]
        var waiting: [(listener: Listener, continuation: CheckedContinuation<UInt16?, Never>)] = []
        var readers: [(text: String, after: Int, continuation: CheckedContinuation<Bool, Never>)] = []

        /// Removes the readers whose line has arrived, or can no longer arrive.
        mutating func answered() -> [(CheckedContinuation<Bool, Never>, Bool)] {
            var answered: [(CheckedContinuation<Bool, Never>, Bool)] = []
            readers.removeAll { reader in
                let isThere = lines.dropFirst(reader.after).contains { $0.contains(reader.text) }
                guard isThere || hasEnded else { return false }
                answered.append((reader.continuation, isThere))
                return true
            }
            return answered
        }

        /// Removes the waiting whose port is known, or can no longer arrive.
        mutating func takeServed() -> [(listener: Listener, continuation: CheckedContinuation<UInt16?, Never>)] {
            let isServed = { [hasEnded, ports] (listener: Listener) in hasEnded || ports[listener] != nil }
            defer { waiting.removeAll { isServed($0.listener) } }
            return waiting.filter { isServed($0.listener) }
        }
    }

    private let state = Mutex(State())

    var all: [String] { state.withLock { $0.lines } }

    /// Reads to the end of a file, on a thread of its own.
    ///
    /// Not with a readability handler: after many of them libdispatch was seen to crash the process of the tests
    /// (swift-corelibs-libdispatch 949).
    func read(_ handle: FileHandle) {
        let thread = Thread { [self] in
            var bytes = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = Foundation.read(handle.fileDescriptor, &bytes, bytes.count)
                if count > 0 { take(Data(bytes[..<count])) }
                if count == 0 || count < 0 && errno != EINTR { break }
            }
            end()
        }
        thread.name = "program log"
        thread.start()
    }

    private func take(_ data: Data) {
        update { state in
            state.rest.append(data)
            while let end = state.rest.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: state.rest[..<end], as: UTF8.self)
                state.rest.removeSubrange(...end)
                state.lines.append(line)
                for listener in Listener.allCases where state.ports[listener] == nil {
                    state.ports[listener] = Self.port(in: line, listener)
                }
            }
        }
    }

    private func end() {
        if state.withLock({ !$0.rest.isEmpty }) { take(Data([UInt8(ascii: "\n")])) }
        update { $0.hasEnded = true }
    }

    /// Waits for the last line.
    func ended() async {
        // No line contains one.
        _ = await contains("\n")
    }

    func known(_ listener: Listener) -> UInt16? { state.withLock { $0.ports[listener] } }

    /// Waits for a port; `nil` if the process exits without it.
    func port(of listener: Listener) async -> UInt16? {
        await withCheckedContinuation { continuation in
            update { $0.waiting.append((listener, continuation)) }
        }
    }

    /// Waits for a line that contains a text, after the first `count` lines; `false` if the process exits without one.
    func contains(_ text: String, after count: Int = 0) async -> Bool {
        await withCheckedContinuation { continuation in
            update { $0.readers.append((text, count, continuation)) }
        }
    }

    private func update(_ change: (inout State) -> Void) {
        let (answered, served, ports) = state.withLock { state in
            change(&state)
            return (state.answered(), state.takeServed(), state.ports)
        }
        for (reader, isThere) in answered { reader.resume(returning: isThere) }
        for (listener, continuation) in served { continuation.resume(returning: ports[listener]) }
    }

    private static func port(in line: String, _ listener: Listener) -> UInt16? {
        guard let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
            let address = object[listener.rawValue] as? String, let colon = address.lastIndex(of: ":")
        else { return nil }
        return UInt16(address[address.index(after: colon)...].prefix { $0 != "/" })
    }
}
