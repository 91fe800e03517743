import Dispatch
import Glibc

/// Asks one thing over a connection of its own, which the server ends.
enum PlainClient {
    struct Failure: Error {
        let call: String
        let code: Int32
    }

    struct Answer: Sendable {
        let status: Int
        let headers: [String: String]
        let body: String
    }

    /// Sends a request without a body; on a queue of its own, since it blocks, and for 20 s at most.
    static func ask(_ method: String, _ path: String, port: UInt16) async throws -> Answer {
        let answer = await withCheckedContinuation { continuation in
            DispatchQueue(label: "client").async {
                continuation.resume(returning: Result { try exchange(method, path, port: port) })
            }
        }
        return try parse(try answer.get())
    }

    private static func exchange(_ method: String, _ path: String, port: UInt16) throws -> [UInt8] {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Failure(call: "socket", code: errno) }
        defer { close(descriptor) }
        var patience = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else { throw Failure(call: "connect", code: errno) }
        let request = Array("\(method) \(path) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".utf8)
        guard send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
            throw Failure(call: "send", code: errno)
        }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count == 0 { return answer }
            guard count > 0 else { throw Failure(call: "recv", code: errno) }
            answer += buffer[..<count]
        }
    }

    private static func parse(_ bytes: [UInt8]) throws -> Answer {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let end = text.firstRange(of: "\r\n\r\n") else { throw Failure(call: "parse", code: 0) }
        let lines = text[..<end.lowerBound].split(separator: "\r\n")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstRange(of: ": ") else { continue }
            headers[line[..<colon.lowerBound].lowercased()] = String(line[colon.upperBound...])
        }
        let status = lines[0].split(separator: " ")[1]
        return Answer(status: Int(status) ?? 0, headers: headers, body: String(text[end.upperBound...]))
    }
}
