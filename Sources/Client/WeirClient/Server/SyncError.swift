import Foundation

/// Why a request to the server failed, and what follows from it.
///
/// Nothing that the app has written is lost by any of these: it stays pending, and Weir tries again by itself.
public struct SyncError: Error, Equatable, Sendable {
    /// What kind of failure it was.
    public enum Kind: Equatable, Sendable {
        /// No complete response arrived.
        case unreachable
        /// The server, or something on the way to it, cannot answer at the moment.
        case unavailable
        /// The response is not one of the contract: often that of a network which asks to log in.
        case unreadable
        /// The app's closure for tokens failed.
        case noToken
        /// The server accepts neither the token nor a new one: the user has to log in again.
        case unauthenticated
        /// The account or the device may not sync: the user or an administrator has to decide.
        case forbidden
        /// The server does not accept the request itself: a mistake of the program or a limit.
        case rejected
        /// The token is of another account than the file: the app's closure returns one of the user who has logged in since, or another process
        /// has attached the file to that account, or detached it.
        case otherAccount
        /// The app's file cannot be read or written at the moment: it is locked, or the disk is full.
        case file
    }

    /// What kind of failure it was.
    public let kind: Kind
    /// The response's status; `nil` if none arrived.
    public let status: Int?
    /// The code of the server's problem document, stable; its documentation says what each means.
    public let code: String?
    /// For developers.
    public let message: String
    /// The earliest time for the next attempt that the server asks for, in seconds.
    public let retryAfter: TimeInterval?

    /// An error without a response.
    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
        (status, code, retryAfter) = (nil, nil, nil)
    }

    /// The error that a response is, unless it is a success.
    package init?(_ response: TransportResponse, now: Date) {
        let kind: Kind
        switch response.status {
        case 200...299, 304: return nil
        case 401: kind = .unauthenticated
        case 403: kind = .forbidden
        // Redirections are those of networks that ask to log in.
        case 300...399: kind = .unreadable
        case 408, 425, 429, 500...599: kind = .unavailable
        default: kind = .rejected
        }
        let problem = Problem(response)
        self.kind = kind
        status = response.status
        code = problem?.code
        message = problem?.sentence ?? "HTTP status \(response.status)"
        retryAfter = response.headers["retry-after"].flatMap { Self.retryAfter($0, now: now) }
    }

    /// Any error that ends a session.
    package init(_ error: any Error) {
        switch error {
        case let error as SyncError: self = error
        case let error as WeirError: self.init(.file, error.description)
        default: self.init(.unreadable, "\(error)")
        }
    }

    /// Whether the same request can succeed later without anyone doing something.
    package var passes: Bool {
        switch kind {
        case .unreachable, .unavailable, .unreadable, .noToken, .file: true
        case .unauthenticated, .forbidden, .rejected, .otherAccount: false
        }
    }

    /// No pause is longer, so that a wrong header does not end syncing.
    static let longestRetryAfter: TimeInterval = 3600

    /// Reads `Retry-After`: seconds or a date.
    private static func retryAfter(_ text: String, now: Date) -> TimeInterval? {
        let text = text.trimmingCharacters(in: .whitespaces)
        let seconds: TimeInterval
        if let count = Int(text) {
            seconds = TimeInterval(count)
        } else {
            let format = DateFormatter()
            format.locale = Locale(identifier: "en_US_POSIX")
            format.timeZone = TimeZone(secondsFromGMT: 0)
            format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
            guard let date = format.date(from: text) else { return nil }
            seconds = date.timeIntervalSince(now)
        }
        return min(max(0, seconds), longestRetryAfter)
    }
}

extension SyncError: CustomStringConvertible {
    /// The error in a sentence.
    public var description: String { (code.map { "\($0): " } ?? "") + message }
}

/// A problem document (RFC 9457), as servers describe what is wrong with a request.
private struct Problem: Decodable {
    let title: String?
    let code: String?
    let detail: String?
    let cause: String?

    init?(_ response: TransportResponse) {
        let type = response.headers["content-type"]?.prefix { $0 != ";" }.lowercased()
        guard type == "application/problem+json" else { return nil }
        do {
            self = try JSONDecoder().decode(Problem.self, from: Data(response.body))
        } catch {
            // The status says enough; a proxy may have cut the document.
            return nil
        }
    }

    var sentence: String? {
        guard let text = detail ?? title else { return nil }
        return text + (cause.map { " (\($0))" } ?? "")
    }
}
