import Dispatch
import Glibc
import Synchronization

/// A client over one connection: requests one after the other, as written.
///
/// Blocking calls run on a queue of its own; one that gets nothing for 20 s fails, so that a broken gateway fails a
/// test and does not hang it.
final class HTTPClient: Sendable {
    struct Failure: Error {
        let call: String
        let code: Int32
    }

    /// An answer as it came.
    struct Answer: Sendable {
        var status = 0
        /// In the order sent, names in lower case.
        var headers: [(name: String, value: String)] = []
        var body: [UInt8] = []

        var text: String { String(decoding: body, as: UTF8.self) }

        /// The value of the only header of that name; `nil` where there is none, or several.
        subscript(name: String) -> String? {
            let found = headers.filter { $0.name == name }
            return found.count == 1 ? found[0].value : nil
        }
    }

    private let socket: Int32
    private let queue = DispatchQueue(label: "http client")
    private let inbox = Mutex<[UInt8]>([])

    /// - Parameter segment: the size of the packets that it accepts, after which a server chooses what it sends ahead.
    init(port: UInt16, receiveBuffer: Int32? = nil, segment: Int32? = nil) throws {
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var patience = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        if var receiveBuffer {
            setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, socklen_t(MemoryLayout<Int32>.size))
        }
        if var segment {
            setsockopt(
                socket, Int32(IPPROTO_TCP), TCP_MAXSEG, &segment, socklen_t(MemoryLayout<Int32>.size))
        }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = port.bigEndian
        name.sin_addr.s_addr = inet_addr("127.0.0.1")
        // The address lives as long as the call.
        let code = withUnsafeBytes(of: &name) {
            connect(
                socket, $0.assumingMemoryBound(to: sockaddr.self).baseAddress!,
                socklen_t(MemoryLayout<sockaddr_in>.size))
        }
        guard socket >= 0, code == 0 else { throw Failure(call: "connect", code: errno) }
    }

    deinit { Glibc.close(socket) }

    /// Sends a request; a body gets its Content-Length.
    func send(
        _ method: String, _ target: String, headers: [String] = [], body: [UInt8]? = nil
    ) async throws {
        let isNamed = headers.contains { $0.hasPrefix("Host:") }
        var lines = ["\(method) \(target) HTTP/1.1"] + (isNamed ? [] : ["Host: localhost"]) + headers
        if let body { lines.append("Content-Length: \(body.count)") }
        try await send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + (body ?? []))
    }

    /// Sends bytes as they are.
    func send(_ bytes: [UInt8]) async throws {
        try await onQueue { client in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    Glibc.send(client.socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { throw Failure(call: "send", code: errno) }
                rest = rest.dropFirst(count)
            }
        }
    }

    /// Closes both sides: the client goes away.
    func leave() { shutdown(socket, Int32(SHUT_RDWR)) }

    /// Reads one answer.
    func answer(toHead: Bool = false) async throws -> Answer {
        try await onQueue { client in
            var answer = try client.readHead()
            if toHead || answer.status == 204 || answer.status == 304 { return answer }
            if answer["transfer-encoding"] == "chunked" {
                while case let piece = try client.readChunk(), !piece.isEmpty { answer.body += piece }
            } else {
                answer.body = try client.take(answer["content-length"].flatMap { Int($0) } ?? 0)
            }
            return answer
        }
    }

    /// Reads the head of an answer and leaves what follows.
    func head() async throws -> Answer { try await onQueue { try $0.readHead() } }

    /// Reads pieces of a chunked answer until one ends with a text; all that was read.
    func chunks(until text: String) async throws -> String {
        try await onQueue { client in
            var read: [UInt8] = []
            while true {
                let piece = try client.readChunk()
                guard !piece.isEmpty else { throw Failure(call: "the stream ended before '\(text)'", code: 0) }
                read += piece
                if read.suffix(text.utf8.count).elementsEqual(text.utf8) {
                    return String(decoding: read, as: UTF8.self)
                }
            }
        }
    }

    /// Reads a chunked answer to its end, or to that of the connection.
    func restOfChunks() async throws -> (text: String, isComplete: Bool) {
        try await onQueue { client in
            var read: [UInt8] = []
            do {
                while true {
                    let piece = try client.readChunk()
                    if piece.isEmpty { return (String(decoding: read, as: UTF8.self), true) }
                    read += piece
                }
            } catch let failure as Failure where failure.code == ECONNRESET || failure.call == "end of connection" {
                return (String(decoding: read, as: UTF8.self), false)
            }
        }
    }

    private func onQueue<Result: Sendable>(_ work: @escaping @Sendable (HTTPClient) throws -> Result) async throws
        -> Result
    {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Swift.Result { try work(self) }) }
        }
    }

    private func readHead() throws -> Answer {
        var answer = Answer()
        answer.status = Int(try line().split(separator: " ")[1]) ?? 0
        while case let line = try line(), !line.isEmpty {
            let parts = line.split(separator: ":", maxSplits: 1)
            answer.headers.append((parts[0].lowercased(), String(parts[1].drop { $0 == " " })))
        }
        return answer
    }

    private func readChunk() throws -> [UInt8] {
        let text = try line()
        guard let size = Int(text, radix: 16) else { throw Failure(call: "chunk size '\(text)'", code: 0) }
        let piece = try take(size)
        _ = try line()
        return piece
    }

    private func line() throws -> String {
        while true {
            let line: String? = inbox.withLock { inbox in
                guard let end = inbox.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
                defer { inbox.removeFirst(end + 1) }
                return String(decoding: inbox[..<end].filter { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
            }
            if let line { return line }
            try more()
        }
    }

    private func take(_ count: Int) throws -> [UInt8] {
        while inbox.withLock({ $0.count < count }) { try more() }
        return inbox.withLock { inbox in
            defer { inbox.removeFirst(count) }
            return Array(inbox[..<count])
        }
    }

    private func more() throws {
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        let count = piece.withUnsafeMutableBytes { recv(socket, $0.baseAddress, $0.count, 0) }
        guard count >= 0 else { throw Failure(call: "recv", code: errno) }
        guard count > 0 else { throw Failure(call: "end of connection", code: 0) }
        inbox.withLock { $0 += piece[..<count] }
    }
}
