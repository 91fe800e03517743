import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// How the server knows the account.
package enum Credentials: Sendable {
    /// The app's closure that returns a valid token.
    case token(@Sendable () async throws -> String)
    /// For a server without authentication, which it offers on loopback alone: the account's syncId and its linked owners.
    case unauthenticated(syncID: String, links: [String: Access])
}

/// What an account may do with the rows of a linked owner.
public enum Access: String, Sendable, Equatable {
    /// Read the rows.
    case read
    /// Read and write the rows.
    case write
}

/// Sends an account's requests to its server.
package actor Server {
    private let url: URL
    private let credentials: Credentials
    private let transport: any Transport
    /// The token in use, until the server rejects it.
    private var token: String?
    /// Asks the app for a token; all requests that need one wait for the same.
    private var renewal: Task<String, any Error>?
    /// The token whose account was compared with the file's.
    private var verifiedToken: String?

    package init(url: URL, credentials: Credentials, transport: any Transport) {
        self.url = url
        self.credentials = credentials
        self.transport = transport
    }

    // MARK: Who is calling

    /// As whom a request is sent.
    package struct Caller: Sendable {
        fileprivate let headers: [String: String]
        fileprivate let token: String?
        /// Whether it is known that the token is of the file's account.
        ///
        /// A batch is sent with such a token only, since a server stores what it receives for the account of the token.
        package let isVerified: Bool

        func hasToken(of other: Caller) -> Bool { token == other.token }
    }

    /// As whom the next request is sent.
    ///
    /// - Throws: `SyncError` if the app has no token; `CancellationError`.
    package func caller() async throws -> Caller {
        switch credentials {
        case .unauthenticated(let syncID, let links):
            var headers = ["x-sync-id": Self.encode(syncID)]
            if !links.isEmpty {
                headers["x-sync-links"] = links.sorted { $0.key < $1.key }
                    .map { "\(Self.encode($0.key)):\($0.value.rawValue)" }.joined(separator: ",")
            }
            return Caller(headers: headers, token: nil, isVerified: true)
        case .token(let closure):
            let token = try await currentToken(closure)
            return Caller(
                headers: ["authorization": "Bearer \(token)"], token: token, isVerified: token == verifiedToken)
        }
    }

    /// Records that a caller is the file's account.
    package func verify(_ caller: Caller) {
        if let token = caller.token { verifiedToken = token }
    }

    private func currentToken(_ closure: @escaping @Sendable () async throws -> String) async throws -> String {
        if let token { return token }
        let task = renewal ?? Task { try await closure() }
        renewal = task
        do {
            let new = try await valueOrCancellation(of: task)
            if renewal == task { (token, renewal) = (new, nil) }
            return new
        } catch {
            if renewal == task { renewal = nil }
            try Task.checkCancellation()
            throw SyncError(.noToken, "the app's closure for tokens failed: \(error)")
        }
    }

    /// An id as part of a URL or a header.
    static func encode(_ id: String) -> String {
        // What RFC 3986 leaves unreserved.
        var unreserved = CharacterSet(charactersIn: "0123456789-._~")
        unreserved.insert(charactersIn: "a"..."z")
        unreserved.insert(charactersIn: "A"..."Z")
        return id.addingPercentEncoding(withAllowedCharacters: unreserved) ?? id
    }

    // MARK: Requests

    /// Sends a request.
    ///
    /// - Parameter path: relative to the server's URL, with the query.
    /// - Returns: a response with a status of success, or 304.
    /// - Throws: `SyncError`; `CancellationError`. After `SyncError.Kind.unauthenticated`, and where the token is for another device, the next
    ///   caller has a new token.
    package func send(
        _ method: String, _ path: String, headers: [String: String] = [:], body: [UInt8] = [], as caller: Caller
    ) async throws -> TransportResponse {
        let request = try request(method, path, headers, body, caller)
        let response: TransportResponse
        do {
            response = try await transport.send(request)
        } catch {
            throw Self.failure(error)
        }
        try check(response, caller)
        return response
    }

    /// Opens an event stream.
    package func open(_ path: String, timeout: TimeInterval, as caller: Caller) async throws -> TransportStream {
        var request = try request("GET", path, ["accept": "text/event-stream"], [], caller)
        request.timeout = timeout
        let stream: TransportStream
        do {
            stream = try await transport.open(request)
            if stream.status != 200 {
                var body: [UInt8] = []
                for try await piece in stream.pieces {
                    body += piece
                    if body.count > Self.mostProblemBytes { break }
                }
                let response = TransportResponse(status: stream.status, headers: stream.headers, body: body)
                try check(response, caller)
                throw SyncError(.unreadable, "HTTP status \(stream.status) in place of events")
            }
        } catch let error as SyncError {
            throw error
        } catch {
            throw Self.failure(error)
        }
        return stream
    }

    private static let mostProblemBytes = 64 * 1024

    private func request(
        _ method: String, _ path: String, _ headers: [String: String], _ body: [UInt8], _ caller: Caller
    ) throws -> TransportRequest {
        let base = url.absoluteString
        guard let target = URL(string: (base.hasSuffix("/") ? base : base + "/") + path) else {
            throw SyncError(.rejected, "\(base) is no base of a URL")
        }
        var headers = caller.headers.merging(headers) { $1 }
        if !body.isEmpty { headers["content-type"] = "application/json" }
        return TransportRequest(method: method, url: target, headers: headers, body: body)
    }

    private func check(_ response: TransportResponse, _ caller: Caller) throws {
        guard let error = SyncError(response, now: Date()) else { return }
        // The file has another name than the token is for. Another request may have got a new one meanwhile.
        let isRejected = error.kind == .unauthenticated || error.code == "wrong_device"
        if isRejected, caller.token == token { token = nil }
        throw error
    }

    /// The failure that an error of the transport is.
    package static func failure(_ error: any Error) -> any Error {
        if error is CancellationError || Task.isCancelled { return CancellationError() }
        if let error = error as? SyncError { return error }
        return SyncError(.unreachable, (error as? URLError)?.localizedDescription ?? "\(error)")
    }
}
