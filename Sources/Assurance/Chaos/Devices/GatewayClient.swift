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

    /// Nanoseconds that a token is used.
    private static let tokenPeriod: Int64 = 5_000_000_000

    private let ports: [UInt16]
    private let makeToken: () throws -> String
    private var token: (text: String, made: Int64)?
    private var connections: [LoadConnection?]
    /// When the newest request was sent, and to which gateway.
    private(set) var newest = (sent: Int64(0), gateway: 0)

    /// - Parameter token: a new token of the caller.
    init(_ ports: [UInt16], token: @escaping () throws -> String) {
        self.ports = ports
        makeToken = token
        connections = Array(repeating: nil, count: ports.count)
    }

    private func headers() throws -> String {
        let now = SystemCall.nanoseconds()
        if token.map({ now - $0.made > Self.tokenPeriod }) ?? true { token = (try makeToken(), now) }
        return "Host: 127.0.0.1\r\nAuthorization: Bearer \(token?.text ?? "")\r\n"
    }

    func post(_ path: String, _ body: String, to gateway: Int, wait: Int? = nil, reads: Bool = true) -> Response? {
        let prefer = wait.map { "Prefer: wait=\($0)\r\n" } ?? ""
        let fields = "\(prefer)Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
        return exchange("POST \(path)", fields, body, gateway, reads)
    }

    func get(_ path: String, from gateway: Int) -> Response? {
        exchange("GET \(path)", "", "", gateway, true)
    }

    func delete(_ path: String, at gateway: Int) -> Response? {
        exchange("DELETE \(path)", "", "", gateway, true)
    }

    /// `nil` where no answer arrives: the request may have been carried out.
    ///
    /// - Parameter reads: `false` to close the connection without reading the answer.
    private func exchange(
        _ line: String, _ fields: String, _ body: String, _ gateway: Int, _ reads: Bool
    ) -> Response? {
        do {
            let request = Array("\(line) HTTP/1.1\r\n\(try headers())\(fields)\r\n\(body)".utf8)
            newest = (SystemCall.nanoseconds(), gateway)
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
