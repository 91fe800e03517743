import HTTP
import Synchronization
import Testing

/// A handler made of closures.
struct ClosureHandler: HTTPHandler {
    var admission: @Sendable (HTTPRequest) -> HTTPBodyPolicy = { _ in .accept }
    let answer: @Sendable (HTTPRequest) -> HTTPHandlerResult

    func bodyPolicy(for request: HTTPRequest) -> HTTPBodyPolicy { admission(request) }
    func respond(to request: HTTPRequest) -> HTTPHandlerResult { answer(request) }
}

/// A server on a free port for the time of a test.
struct TestServer {
    private let server: HTTPServer

    init(
        _ configure: (inout HTTPServerConfiguration) -> Void = { _ in },
        admission: @escaping @Sendable (HTTPRequest) -> HTTPBodyPolicy = { _ in .accept },
        answer: @escaping @Sendable (HTTPRequest) -> HTTPHandlerResult
    ) {
        var configuration = HTTPServerConfiguration()
        configuration.threads = 2
        configure(&configuration)
        server = HTTPServer(
            configuration: configuration, handler: ClosureHandler(admission: admission, answer: answer))
    }

    /// Starts the server, runs the test, stops the server and checks that nothing is left behind.
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

/// Things that happened, awaited one by one.
final class Signal<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var waiting: [CheckedContinuation<Value, Never>] = []
    }

    private let state = Mutex(State())

    func send(_ value: Value) {
        let waiter: CheckedContinuation<Value, Never>? = state.withLock { state in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.values.append(value)
            return nil
        }
        waiter?.resume(returning: value)
    }

    func next() async -> Value {
        await withCheckedContinuation { continuation in
            let value: Value? = state.withLock { state in
                if !state.values.isEmpty { return state.values.removeFirst() }
                state.waiting.append(continuation)
                return nil
            }
            if let value { continuation.resume(returning: value) }
        }
    }
}

extension Signal where Value == Void {
    func send() { send(()) }
}

/// Answers with the body of the request.
let echo: @Sendable (HTTPRequest) -> HTTPHandlerResult = { request in
    .response(HTTPResponse(status: 200, body: request.body.bytes))
}

/// Answers with a text.
func text(_ text: String) -> HTTPResponse {
    HTTPResponse(status: 200, headers: [HTTPField("Content-Type", "text/plain")], body: Array(text.utf8))
}
