import Glibc
import LoadTools

/// A device's connections to the gateways; it sends each request to one of them, chosen at random.
///
/// Used by one thread at a time.
final class GatewayClient {
    struct Response {
        let status: Int
        let body: [UInt8]

        /// Whether the body is a problem with this code.
        func hasCode(_ code: String) -> Bool {
            status != 200 && String(decoding: body, as: UTF8.self).contains("\"code\":\"\(code)\"")
        }
    }

    /// Longer than a gateway waits for an outcome; a gateway that is suspended sends nothing.
    private static let timeLimitSeconds = 25

    private let ports: [UInt16]
    private let headers: String
    private var connections: [LoadConnection?]

    init(_ ports: [UInt16], owner: String, links: String) {
        self.ports = ports
        connections = Array(repeating: nil, count: ports.count)
        headers =
            "Host: 127.0.0.1\r\nX-Sync-Id: \(owner)\r\n" + (links.isEmpty ? "" : "X-Sync-Links: \(links)\r\n")
    }

    func post(_ path: String, _ body: String, to gateway: Int, wait: Int? = nil, reads: Bool = true) -> Response? {
        let prefer = wait.map { "Prefer: wait=\($0)\r\n" } ?? ""
        let head =
            "POST \(path) HTTP/1.1\r\n\(headers)\(prefer)Content-Type: application/json\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n"
        return exchange(Array((head + body).utf8), gateway, reads)
    }

    func get(_ path: String, from gateway: Int) -> Response? {
        exchange(Array("GET \(path) HTTP/1.1\r\n\(headers)\r\n".utf8), gateway, true)
    }

    /// `nil` where no answer arrives: the request may have been carried out.
    ///
    /// - Parameter reads: `false` to close the connection without reading the answer.
    private func exchange(_ request: [UInt8], _ gateway: Int, _ reads: Bool) -> Response? {
        do {
            let connection =
                try connections[gateway]
                ?? LoadConnection(
                    port: ports[gateway], timeLimitSeconds: Self.timeLimitSeconds)
            connections[gateway] = nil
            try connection.send(request)
            guard reads else { return nil }
            let response = try connection.receive { status, body in Response(status: status, body: Array(body)) }
            connections[gateway] = connection
            return response
        } catch {
            return nil
        }
    }
}
