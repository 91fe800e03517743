import HTTP
import SyncModel

/// Who calls, and what is checked before a request's body is read.
extension GatewayHandler {
    /// The size of a body that is read and not used; nobody is authenticated for it.
    static var maximumUnusedBody: Int { 4096 }

    /// Refuses requests that cannot succeed before their body is read.
    package func bodyPolicy(for request: HTTPRequest) -> HTTPBodyPolicy {
        if let face = faces[request.segments] { return bodyPolicy(for: request, of: face) }
        do throws(Problem) {
            try checkHost(request)
            if try demoFile(request) != nil { return .acceptUpTo(Self.maximumUnusedBody) }
            let route = try route(of: request)
            // HTTP allows a body with every method, so one that is not used is read, too.
            guard route.usesBody(with: request.method) else { return .acceptUpTo(Self.maximumUnusedBody) }
            let isUpload = route == .sync || route == .upload
            let caller = try callerBeforeBody(
                of: request, mayBeLarge: isUpload && Self.mayHaveLargeBody(request),
                { caller throws(Problem) in try caller.check(route) },
                { () throws(Problem) in try Self.checkMediaType(request) })
            if isUpload, waitingCount >= configuration.maxWaiting { throw tooManyWaiting }
            return .acceptUpTo(
                route == .device ? Self.maximumUnusedBody : limits.maxBatchBytes, caller: Self.name(ofShare: caller),
                context: RecentCaller(caller, at: clock.now()))
        } catch {
            return .refuse(respond(to: error))
        }
    }

    /// The caller of a request whose body is still to be read.
    ///
    /// - Parameters:
    ///   - mayBeLarge: whether the body is an upload that may be large; then the caller needs bytes left, since to read it costs much
    ///     also where it turns out to be refused.
    ///   - checkCaller: checks a caller that is known already.
    ///   - checkRequest: checks the rest of what is there; a failure counts as a request of a known caller.
    func callerBeforeBody(
        of request: HTTPRequest, mayBeLarge: Bool = false, _ checkCaller: (Caller) throws(Problem) -> Void,
        _ checkRequest: () throws(Problem) -> Void
    ) throws(Problem) -> CallerLookup {
        let lookup = try authenticator.caller(of: request)
        guard case .known(let caller) = lookup else {
            try checkRequest()
            return lookup
        }
        try rates.check(caller.syncID, RateCost(bytes: mayBeLarge ? 1 : 0))
        try counting(caller) { () throws(Problem) in
            try checkCaller(caller)
            try checkRequest()
        }
        return lookup
    }

    /// The caller that was found before the body was read, or found again if that took long.
    func callerOfComplete(_ request: HTTPRequest) throws(Problem) -> CallerLookup {
        if let recent = request.context as? RecentCaller, let caller = recent.caller(at: clock.now()) {
            return .known(caller)
        }
        return try authenticator.caller(of: request)
    }

    /// Whose share of the bodies in memory a body counts for; all whose caller is not known yet have one together, under a name
    /// that no syncId can have.
    static func name(ofShare caller: CallerLookup) -> String {
        if case .known(let caller) = caller { caller.syncID.text } else { "\u{0}" }
    }

    /// Runs checks of a request whose device is not known yet; one that fails counts as a request of the caller alone.
    ///
    /// - Parameter bytes: of its body where the checks read it, which its caller's later uploads lack.
    func counting<Result>(
        _ caller: Caller, bytes: Int = 0, _ checks: () throws(Problem) -> Result
    ) throws(Problem) -> Result {
        do throws(Problem) {
            return try checks()
        } catch {
            let status = try rates.take(.request, of: caller.syncID)
            if bytes > 0 { rates.refused(bytes, of: caller.syncID) }
            throw error.adding(status)
        }
    }

    /// Whether a body has more than 64 KiB, or may have a thousand times what it has compressed.
    ///
    /// Smaller ones may be pulls, which cost no bytes.
    private static func mayHaveLargeBody(_ request: HTTPRequest) -> Bool {
        guard let length = request.headers.text(of: "content-length").flatMap({ Int($0) }) else { return true }
        return length > (request.headers.all("content-encoding").isEmpty ? 64 << 10 : 1 << 10)
    }

    /// Refuses other names than loopback's where nobody has to prove an identity: a web page whose name resolves to this machine
    /// could else send requests (DNS rebinding).
    func checkHost(_ request: HTTPRequest) throws(Problem) {
        guard authenticator.trustsEveryCaller, let host = request.headers.bytes(of: "host") else { return }
        guard Loopback.isNamed(by: host) else {
            throw Problem(.forbidden, "with auth none the header Host must name loopback, as localhost does")
        }
    }

    static func checkMediaType(_ request: HTTPRequest) throws(Problem) {
        guard let type = request.headers.text(of: "content-type") else { return }
        if type.utf8.elementsEqual("application/json".utf8) { return }
        let parts = type.lowercased().split(separator: ";").map(\.trimmingASCIISpaces)
        let isJSON = parts.first.map { $0.utf8.elementsEqual("application/json".utf8) } ?? false
        let isUTF8 = parts.dropFirst().allSatisfy { parameter in
            !parameter.utf8.starts(with: "charset=".utf8)
                || parameter.utf8.filter { $0 != UInt8(ascii: "\"") }.elementsEqual("charset=utf-8".utf8)
        }
        guard isJSON, isUTF8 else { throw Problem(.unsupportedMediaType, "the body must be application/json in UTF-8") }
    }
}

extension Substring {
    fileprivate var trimmingASCIISpaces: Substring {
        var text = self
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }
}
