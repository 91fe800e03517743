import AsyncPrimitives
import HTTP
import Synchronization
import TestSignals
import WebTokens

/// An issuer of tokens: a web server on loopback that publishes keys.
package final class TestAuthority: Sendable {
    /// What the server responds.
    package struct Answer: Sendable {
        package var status = 200
        package var body: [UInt8] = []
        package var headers: [(String, String)] = []

        package init(status: Int = 200, body: [UInt8] = [], headers: [(String, String)] = []) {
            self.status = status
            self.body = body
            self.headers = headers
        }
    }

    private final class Handler: HTTPHandler {
        let answer = Mutex(Answer(status: 404))
        let gate = Gate()
        let requests = Signal<Void>()
        let count = Atomic(0)

        func respond(to request: HTTPRequest) -> HTTPHandlerResult {
            count.add(1, ordering: .relaxed)
            requests.send()
            return .task { [self] in
                // Cancelled when the client has gone.
                do { try await gate.wait() } catch { return HTTPResponse(status: 503) }
                let answer = answer.withLock(\.self)
                return HTTPResponse(
                    status: answer.status, headers: answer.headers.map { HTTPField($0.0, $0.1) }, body: answer.body)
            }
        }
    }

    private let handler = Handler()
    private let server: HTTPServer
    private let port: UInt16
    private let isSecure: Bool

    /// Starts a server that has nothing at first.
    ///
    /// - Parameter tls: files with ``LocalhostCertificate``; `nil` for plain HTTP.
    package init(tls: HTTPTLSFiles? = nil) throws {
        var configuration = HTTPServerConfiguration()
        configuration.threads = 1
        configuration.tls = tls
        isSecure = tls != nil
        server = HTTPServer(configuration: configuration, handler: handler)
        port = try server.start().port
        handler.gate.open()
    }

    package var url: String { isSecure ? "https://localhost:\(port)/keys" : "http://127.0.0.1:\(port)/keys" }

    /// Sent for each request as it arrives.
    package var requests: Signal<Void> { handler.requests }

    package var requestCount: Int { handler.count.load(ordering: .relaxed) }

    package func respond(_ answer: Answer) { handler.answer.withLock { $0 = answer } }

    /// Publishes a JWK set.
    package func publish(_ keys: SigningKey..., cacheControl: String? = nil) {
        respond(
            Answer(body: SigningKey.jwks(keys), headers: cacheControl.map { [("Cache-Control", $0)] } ?? []))
    }

    /// Lets further requests wait, until ``release()``.
    package func hold() { handler.gate.close() }

    package func release() { handler.gate.open() }

    /// Stops the server: further connections are refused.
    package func stop() async {
        handler.gate.open()
        await server.stop(patience: .zero)
    }
}
