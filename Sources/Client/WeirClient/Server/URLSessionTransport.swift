import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sends requests with `URLSession`.
///
/// Bodies of responses are received by a delegate, which works on all platforms. Redirections are not followed: they would send
/// the token to another server.
public final class URLSessionTransport: Transport {
    private let session: URLSession
    private let receiver = Receiver()

    /// - Parameter configuration: by default one without cookies, caches and stored credentials.
    public init(configuration: URLSessionConfiguration = .ephemeral) {
        configuration.httpShouldSetCookies = false
        // With a cache, Foundation for Linux ends the process if a task is cancelled while it looks there.
        configuration.urlCache = nil
        session = URLSession(configuration: configuration, delegate: receiver, delegateQueue: nil)
    }

    deinit { session.finishTasksAndInvalidate() }

    /// Sends a request and receives the whole response.
    public func send(_ request: TransportRequest) async throws -> TransportResponse {
        let stream = try await open(request)
        var body: [UInt8] = []
        for try await piece in stream.pieces { body += piece }
        // A cancelled task's stream ends like a complete one.
        try Task.checkCancellation()
        return TransportResponse(status: stream.status, headers: stream.headers, body: body)
    }

    /// Sends a request and receives the head of the response.
    public func open(_ request: TransportRequest) async throws -> TransportStream {
        var message = URLRequest(url: request.url, timeoutInterval: request.timeout)
        message.httpMethod = request.method
        for (name, value) in request.headers { message.setValue(value, forHTTPHeaderField: name) }
        if !request.body.isEmpty { message.httpBody = Data(request.body) }
        let task = session.dataTask(with: message)
        for try await stream in receiver.start(task, cancelledOn: session.delegateQueue) { return stream }
        throw CancellationError()
    }
}

/// Receives the responses of all tasks of a session.
private final class Receiver: NSObject, URLSessionDataDelegate {
    private typealias Head = AsyncThrowingStream<TransportStream, any Error>
    private typealias Body = AsyncThrowingStream<[UInt8], any Error>

    private struct Response {
        let head: Head.Continuation
        let body: Body.Continuation
        /// Until the reader has it.
        var pieces: Body?
    }

    /// Pieces that a reader has not taken yet: URLSession makes them of some 16 KiB, and a page has a few megabytes.
    private static let mostPieces = 8192

    private let responses = Protected<[Int: Response]>([:])

    /// Starts a task.
    ///
    /// - Parameter queue: the session's, which calls this delegate. Foundation for Linux ends the process if a task is cancelled while
    ///   it completes.
    /// - Returns: the response's head, when it is there. Who stops waiting for it, or for a piece, cancels the task.
    func start(
        _ task: URLSessionDataTask, cancelledOn queue: OperationQueue
    ) -> AsyncThrowingStream<TransportStream, any Error> {
        let (heads, head) = Head.makeStream()
        let (pieces, body) = Body.makeStream(bufferingPolicy: .bufferingOldest(Self.mostPieces))
        head.onTermination = { if case .cancelled = $0 { queue.addOperation { task.cancel() } } }
        body.onTermination = { if case .cancelled = $0 { queue.addOperation { task.cancel() } } }
        responses.withLock { $0[task.taskIdentifier] = Response(head: head, body: body, pieces: pieces) }
        task.resume()
        return heads
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        let found = responses.withLock { responses in
            defer { responses[dataTask.taskIdentifier]?.pieces = nil }
            return responses[dataTask.taskIdentifier]
        }
        guard let found, let pieces = found.pieces, let response = response as? HTTPURLResponse else {
            return completionHandler(.cancel)
        }
        var headers: [String: String] = [:]
        for (name, value) in response.allHeaderFields {
            if let name = name as? String, let value = value as? String { headers[name.lowercased()] = value }
        }
        // The reader has the head as soon as it is yielded, and lets go of the stream that it comes by: no reason to cancel the task.
        found.head.onTermination = nil
        found.head.yield(TransportStream(status: response.statusCode, headers: headers, pieces: pieces))
        found.head.finish()
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        guard let body = responses.withLock({ $0[dataTask.taskIdentifier]?.body }) else { return }
        if case .dropped = body.yield([UInt8](data)) {
            body.finish(throwing: URLError(.dataLengthExceedsMaximum))
            dataTask.cancel()
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let response = responses.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
        // Without a response there is an error; finishing a second time does nothing.
        response.head.finish(throwing: error ?? URLError(.badServerResponse))
        response.body.finish(throwing: error)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }
}
