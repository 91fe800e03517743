import ChangeLog
import Foundation
import ThreadExecutor

/// Speaks HTTP to a server on this machine, one connection for each request, and reads JSON.
struct DeviceClient: Sendable {
    let port: UInt16
    /// The caller: X-Sync-Id and X-Sync-Links.
    var headers: [String: String]

    init(port: UInt16, syncID: String, links: String? = nil) {
        self.port = port
        headers = ["X-Sync-Id": syncID]
        if let links { headers["X-Sync-Links"] = links }
    }

    init(port: UInt16, headers: [String: String]) {
        self.port = port
        self.headers = headers
    }

    /// An answer.
    struct Answer: Sendable {
        let status: Int
        let headers: [String: String]
        let body: Data

        /// The body as JSON's objects, arrays and values.
        func json() throws -> JSON {
            JSON(try JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed))
        }
    }

    /// A broken exchange.
    struct Failure: Error, CustomStringConvertible {
        let description: String
        /// The answer's status; `nil` where none came: whether the server took the request is not known then.
        var status: Int?
    }

    func post(_ path: String, _ body: JSON, headers: [String: String] = [:]) async throws -> Answer {
        try await send("POST", path, try JSONSerialization.data(withJSONObject: body.value), headers)
    }

    func get(_ path: String, headers: [String: String] = [:]) async throws -> Answer {
        try await send("GET", path, nil, headers)
    }

    /// Posts and expects 200.
    func sync(_ body: JSON, to path: String = "/v1/sync") async throws -> JSON {
        let answer = try await post(path, body)
        guard answer.status == 200 else {
            throw Failure(
                description: "\(answer.status): \(String(decoding: answer.body, as: UTF8.self))", status: answer.status)
        }
        return try answer.json()
    }

    /// Posts bytes as they are.
    func post(_ path: String, bytes: Data, headers: [String: String] = [:]) async throws -> Answer {
        try await send("POST", path, bytes, headers)
    }

    private func send(
        _ method: String, _ path: String, _ body: Data?, _ more: [String: String]
    ) async throws -> Answer {
        var head = "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        for (name, value) in headers.merging(more, uniquingKeysWith: { $1 }) { head += "\(name): \(value)\r\n" }
        if let body {
            if more["Content-Type"] == nil { head += "Content-Type: application/json\r\n" }
            head += "Content-Length: \(body.count)\r\n"
        }
        let request = Data((head + "\r\n").utf8) + (body ?? Data())
        let port = port
        let thread = try DedicatedThread(name: "client")
        let result = await Result.capturing { try await thread.run { try Self.exchange(request, port: port) } }
        await thread.close()
        return try result.get()
    }

    private static func exchange(_ request: Data, port: UInt16) throws -> Answer {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw Failure(description: "socket: \(errno)") }
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, size) }
        }
        guard connected == 0 else { throw Failure(description: "connect: \(errno)") }
        var rest = request[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes {
                Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { throw Failure(description: "send: \(errno)") }
            rest = rest.dropFirst(sent)
        }
        var answer = Data()
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count == 0 { break }
            guard count > 0 else { throw Failure(description: "recv: \(errno)") }
            answer.append(contentsOf: buffer[..<count])
        }
        return try parse(answer)
    }

    /// Reads an answer that ended with its connection.
    static func parse(_ data: Data) throws -> Answer {
        guard let end = data.range(of: Data("\r\n\r\n".utf8)) else {
            throw Failure(description: "no answer: \(String(decoding: data, as: UTF8.self))")
        }
        let lines = String(decoding: data[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        let status = Int(lines[0].split(separator: " ")[1]) ?? 0
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            headers[parts[0].lowercased()] = parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : ""
        }
        var body = Data(data[end.upperBound...])
        if headers["transfer-encoding"] == "chunked" { body = try unchunked(body) }
        if let length = headers["content-length"].flatMap({ Int($0) }), body.count < length {
            throw Failure(description: "\(body.count) of \(length) bytes came")
        }
        return Answer(status: status, headers: headers, body: body)
    }

    private static func unchunked(_ data: Data) throws -> Data {
        var body = Data()
        var rest = data[...]
        while let end = rest.range(of: Data("\r\n".utf8)) {
            guard let size = Int(String(decoding: rest[..<end.lowerBound], as: UTF8.self), radix: 16) else { break }
            if size == 0 { return body }
            body.append(rest[end.upperBound..<(end.upperBound + size)])
            rest = rest[(end.upperBound + size + 2)...]
        }
        throw Failure(description: "a broken chunked body")
    }
}
