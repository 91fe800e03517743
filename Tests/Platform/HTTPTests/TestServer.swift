import HTTP
import Testing

struct ClosureHandler: HTTPHandler {
    var bodyPolicy: @Sendable (HTTPRequest) -> HTTPBodyPolicy = { _ in .accept }
    let answer: @Sendable (HTTPRequest) -> HTTPHandlerResult

    func bodyPolicy(for request: HTTPRequest) -> HTTPBodyPolicy { bodyPolicy(request) }
    func respond(to request: HTTPRequest) -> HTTPHandlerResult { answer(request) }
}

/// A server on a free port for the time of a test.
struct TestServer {
    private let server: HTTPServer

    init(
        _ configure: (inout HTTPServerConfiguration) -> Void = { _ in },
        bodyPolicy: @escaping @Sendable (HTTPRequest) -> HTTPBodyPolicy = { _ in .accept },
        answer: @escaping @Sendable (HTTPRequest) -> HTTPHandlerResult
    ) {
        var configuration = HTTPServerConfiguration()
        configuration.threads = 2
        configure(&configuration)
        server = HTTPServer(
            configuration: configuration, handler: ClosureHandler(bodyPolicy: bodyPolicy, answer: answer))
    }

    /// Starts the server, runs the test, stops the server and checks that nothing remains.
    func run(_ test: (HTTPServer, UInt16) async throws -> Void) async throws {
        let address = try server.start()
        do {
            try await test(server, address.port)
        } catch {
            await server.stop(patience: .zero)
            throw error
        }
        await server.stop(patience: .zero)
        #expect(server.counters.connections == 0)
        #expect(server.counters.requestsUnderWay == 0)
    }
}

/// Responds with the body of the request.
let echo: @Sendable (HTTPRequest) -> HTTPHandlerResult = { request in
    .response(HTTPResponse(status: 200, body: request.body.bytes))
}

func text(_ text: String) -> HTTPResponse {
    HTTPResponse(status: 200, headers: [HTTPField("Content-Type", "text/plain")], body: Array(text.utf8))
}
