import Foundation

/// Sends HTTP requests to a server on this machine, one connection for each, and reads JSON.
struct DeviceClient: Sendable {
    let port: UInt16
    /// The caller: X-Sync-Id and X-Sync-Links.
    var headers: [String: String]
    /// What happens to requests on their way; `nil`: nothing.
    var network: (any Network)?

    /// A network that loses requests and answers by throwing.
    protocol Network: Sendable {
        func willSend(_ request: String) async throws
        func didReceive(_ request: String) async throws
    }

    init(port: UInt16, syncID: String, links: String? = nil) {
        self.port = port
        headers = ["X-Sync-Id": syncID]
        if let links { headers["X-Sync-Links"] = links }
    }

    init(port: UInt16, headers: [String: String]) {
        self.port = port
        self.headers = headers
    }

    struct Answer: Sendable {
        let status: Int
        let headers: [String: String]
        let body: Data

        func json() throws -> JSON {
            JSON(try JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed))
        }
    }

    /// A request without an answer, or with one that is no success.
    struct Failure: Error, CustomStringConvertible {
        let description: String
        /// The answer's status; `nil` where no answer arrived, and then the request may have been accepted.
        var status: Int?
    }

    func post(_ path: String, _ body: JSON, headers: [String: String] = [:]) async throws -> Answer {
        try await send("POST", path, try JSONSerialization.data(withJSONObject: body.value), headers)
    }

    func get(_ path: String, headers: [String: String] = [:]) async throws -> Answer {
        try await send("GET", path, nil, headers)
    }

    func patch(_ path: String, _ body: JSON) async throws -> Answer {
        try await send("PATCH", path, try JSONSerialization.data(withJSONObject: body.value), [:])
    }

    func delete(_ path: String) async throws -> Answer { try await send("DELETE", path, nil, [:]) }

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

    func send(
        _ method: String, _ path: String, _ body: Data?, _ more: [String: String] = [:]
    ) async throws -> Answer {
        let request = request(method, path, body, more.merging(["Connection": "close"]) { $1 })
        let port = port
        try await network?.willSend("\(method) \(path)")
        let answer = try await RawConnection.onThread {
            let connection = try RawConnection(port: port)
            guard connection.send(request) else { throw Failure(description: "send: \(errno)") }
            return try Self.parse(try connection.rest(), toHead: method == "HEAD")
        }
        try await network?.didReceive("\(method) \(path)")
        return answer
    }

    /// The bytes of a request.
    func request(_ method: String, _ path: String, _ body: Data?, _ more: [String: String] = [:]) -> Data {
        var head = "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        for (name, value) in headers.merging(more, uniquingKeysWith: { $1 }) { head += "\(name): \(value)\r\n" }
        if let body {
            if more["Content-Type"] == nil { head += "Content-Type: application/json\r\n" }
            head += "Content-Length: \(body.count)\r\n"
        }
        return Data((head + "\r\n").utf8) + (body ?? Data())
    }

    /// Reads an answer that ended with its connection.
    static func parse(_ data: Data, toHead: Bool = false) throws -> Answer {
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
        if !toHead, let length = headers["content-length"].flatMap({ Int($0) }), body.count < length {
            throw Failure(description: "\(body.count) of \(length) bytes arrived")
        }
        return Answer(status: status, headers: headers, body: body)
    }

    private static func unchunked(_ data: Data) throws -> Data {
        var body = Data()
        var rest = data[...]
        while let end = rest.range(of: Data("\r\n".utf8)) {
            guard let size = Int(String(decoding: rest[..<end.lowerBound], as: UTF8.self), radix: 16) else { break }
            if size == 0 { return body }
            guard rest.endIndex - end.upperBound >= size + 2 else { break }
            body.append(rest[end.upperBound..<(end.upperBound + size)])
            rest = rest[(end.upperBound + size + 2)...]
        }
        throw Failure(description: "a broken chunked body")
    }
}
