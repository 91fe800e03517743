import Dispatch
import Glibc

/// A client that sends what it is told, right or wrong, over a socket of its own.
///
/// Its blocking calls run on a queue of its own; a call that gets no answer for 20 s fails, so that a broken server
/// fails a test and does not hang it.
final class RawClient: Sendable {
    struct Failure: Error {
        let call: String
        let code: Int32
    }

    /// An answer as it came.
    struct Answer {
        var status = 0
        /// By name in lower case, repeated ones joined by a comma.
        var headers: [String: String] = [:]
        var body: [UInt8] = []
        var text: String { String(decoding: body, as: UTF8.self) }
    }

    /// What was read and not yet used; touched on the queue alone.
    private final class Inbox: @unchecked Sendable {
        var bytes: [UInt8] = []
    }

    private let socket: Int32
    private let queue = DispatchQueue(label: "raw client")
    private let inbox = Inbox()

    /// Connects and sends the first text at once, however busy the tests' own threads are; `from` is the address of the
    /// client's own end, `receiveBuffer` makes it a slow reader.
    init(
        _ host: String = "127.0.0.1", port: UInt16, from source: String = "127.0.0.1", receiveBuffer: Int32? = nil,
        sending first: String = ""
    ) async throws {
        let queue = queue
        socket = try await withCheckedThrowingContinuation { continuation in
            queue.async {
                continuation.resume(
                    with: Result {
                        let socket = try Self.connect(host, port, source, receiveBuffer)
                        try Self.send(Array(first.utf8)[...], to: socket)
                        return socket
                    })
            }
        }
    }

    deinit {
        Glibc.close(socket)
    }

    private static func connect(
        _ host: String, _ port: UInt16, _ source: String, _ receiveBuffer: Int32?
    ) throws -> Int32 {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { throw Failure(call: "socket", code: errno) }
        var patience = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        if var receiveBuffer {
            setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, socklen_t(MemoryLayout<Int32>.size))
        }
        for (address, port, call) in [(source, UInt16(0), Glibc.bind), (host, port, Glibc.connect)] {
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            name.sin_addr.s_addr = inet_addr(address)
            let code = withUnsafeBytes(of: &name) {
                call(
                    socket, $0.assumingMemoryBound(to: sockaddr.self).baseAddress!,
                    socklen_t(MemoryLayout<sockaddr_in>.size))
            }
            guard code == 0 else {
                let failure = Failure(call: "connect", code: errno)
                Glibc.close(socket)
                throw failure
            }
        }
        return socket
    }

    private func onQueue<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Swift.Result { try work() }) }
        }
    }

    /// Sends text.
    func send(_ text: String) async throws {
        try await send(Array(text.utf8))
    }

    /// Sends bytes, all of them.
    func send(_ bytes: [UInt8]) async throws {
        try await onQueue { [self] in try Self.send(bytes[...], to: socket) }
    }

    private static func send(_ bytes: ArraySlice<UInt8>, to socket: Int32) throws {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { throw Failure(call: "send", code: errno) }
            rest = rest.dropFirst(count)
        }
    }

    /// Sends while another call of this client reads.
    func sendWhileReading(_ text: String) async throws {
        let socket = socket
        let bytes = Array(text.utf8)
        try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
            DispatchQueue.global().async {
                let count = bytes.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                done.resume(with: count == bytes.count ? .success(()) : .failure(Failure(call: "send", code: errno)))
            }
        }
    }

    /// Whether the server has sent something, or closed the connection.
    var hasInput: Bool {
        get async throws {
            try await onQueue { [self] in
                var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
                return poll(&waiting, 1, 0) != 0
            }
        }
    }

    /// Sends a text again and again until the server says something; each time waits that long for it.
    func trickle(_ text: String, everyMilliseconds pause: Int32) async throws {
        try await onQueue { [self] in
            let bytes = Array(text.utf8)
            var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            while poll(&waiting, 1, pause) == 0 {
                let count = bytes.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                guard count == bytes.count else { throw Failure(call: "send", code: errno) }
            }
        }
    }

    /// Closes the sending side.
    func finishSending() async throws {
        try await onQueue { [self] in _ = shutdown(socket, Int32(SHUT_WR)) }
    }

    /// Ends the connection with a reset, as a client that crashes.
    func reset() async throws {
        try await onQueue { [self] in
            var now = linger(l_onoff: 1, l_linger: 0)
            setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
            // A connect to no family dissolves the connection and keeps the descriptor.
            var none = sockaddr()
            none.sa_family = sa_family_t(AF_UNSPEC)
            Glibc.connect(socket, &none, socklen_t(MemoryLayout<sockaddr>.size))
        }
    }

    /// Reads one answer; one to HEAD has no body, and 1xx are answers too.
    func answer(toHead: Bool = false) async throws -> Answer {
        try await onQueue { [self] in
            var answer = Answer()
            answer.status = Int(try line().split(separator: " ")[1]) ?? 0
            while case let line = try line(), !line.isEmpty {
                let parts = line.split(separator: ":", maxSplits: 1)
                let name = parts[0].lowercased()
                let value = String(parts[1].drop { $0 == " " })
                answer.headers[name] = answer.headers[name].map { "\($0),\(value)" } ?? value
            }
            if toHead || answer.status < 200 || answer.status == 204 || answer.status == 304 { return answer }
            if answer.headers["transfer-encoding"] == "chunked" {
                while case let size = try chunkSize(), size > 0 {
                    answer.body += try take(size)
                    _ = try line()
                }
                _ = try line()
            } else if let length = answer.headers["content-length"].flatMap({ Int($0) }) {
                answer.body = try take(length)
            } else {
                while try more() {}
                answer.body = inbox.bytes
                inbox.bytes = []
            }
            return answer
        }
    }

    /// Reads the head of a chunked answer and leaves its chunks.
    func head() async throws -> Int {
        try await onQueue { [self] in
            let status = Int(try line().split(separator: " ")[1]) ?? 0
            while try !line().isEmpty {}
            return status
        }
    }

    /// Reads one chunk; empty at the end.
    func chunk() async throws -> String {
        try await onQueue { [self] in
            let bytes = try take(try chunkSize())
            _ = try line()
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    /// Reads some bytes at a time until the server ends the connection, by whatever means; returns how many there were.
    func readSlowly(everyMilliseconds pause: Int32) async throws -> Int {
        try await onQueue { [self] in
            var count = 0
            do {
                while try more() {
                    count += inbox.bytes.count
                    inbox.bytes = []
                    poll(nil, 0, pause)
                }
            } catch let failure as Failure where failure.code == ECONNRESET {
                // An end as well.
            }
            return count
        }
    }

    /// Reads until the server ends the connection, by whatever means.
    func rest() async throws -> String {
        try await onQueue { [self] in
            do {
                while try more() {}
            } catch let failure as Failure where failure.code == ECONNRESET {
                // An end as well.
            }
            defer { inbox.bytes = [] }
            return String(decoding: inbox.bytes, as: UTF8.self)
        }
    }

    private func chunkSize() throws -> Int {
        let text = try line()
        guard let size = Int(text, radix: 16) else { throw Failure(call: "chunk size '\(text)'", code: 0) }
        return size
    }

    private func line() throws -> String {
        while true {
            if let end = inbox.bytes.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: inbox.bytes[..<end].filter { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
                inbox.bytes.removeFirst(end + 1)
                return line
            }
            guard try more() else { throw Failure(call: "end of connection", code: 0) }
        }
    }

    private func take(_ count: Int) throws -> [UInt8] {
        while inbox.bytes.count < count {
            guard try more() else { throw Failure(call: "end of connection", code: 0) }
        }
        defer { inbox.bytes.removeFirst(count) }
        return Array(inbox.bytes[..<count])
    }

    private func more() throws -> Bool {
        var piece = [UInt8](repeating: 0, count: 16 << 10)
        let count = piece.withUnsafeMutableBytes { recv(socket, $0.baseAddress, $0.count, 0) }
        guard count >= 0 else { throw Failure(call: "recv", code: errno) }
        inbox.bytes += piece[..<count]
        return count > 0
    }
}
