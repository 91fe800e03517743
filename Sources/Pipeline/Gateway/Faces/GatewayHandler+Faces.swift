import HTTP
import Observability
import SyncModel
import Synchronization

/// The faces of a gateway, by the first segment of a path.
package struct GatewayFaces: Sendable {
    private let faces: [String: any Face]
    private let checked = CheckedSchemas()
    /// The size of an owner's file.
    package let maximumFileBytes: Int

    /// - Parameter faces: each with another prefix, and none with `v1`.
    package init(_ faces: [any Face] = [], maximumFileBytes: Int = 0) {
        self.maximumFileBytes = maximumFileBytes
        self.faces = Dictionary(uniqueKeysWithValues: faces.map { ($0.prefix, $0) })
    }

    /// Why one of them cannot serve a schema, for operators; `nil` where all can.
    package func problem(with schema: Schema) -> String? {
        for (prefix, face) in faces.sorted(by: { $0.key < $1.key }) {
            if let problem = face.problem(with: schema) { return "the face under /\(prefix): \(problem)" }
        }
        return nil
    }

    /// Why a face cannot serve a version; found once.
    func problem(of face: any Face, with version: SchemaHistory.Entry) -> String? {
        checked.problem(face.prefix, version.version.hash) { face.problem(with: version.schema) }
    }

    subscript(_ path: [String]) -> (any Face)? { path.first.flatMap { faces[$0] } }
}

/// What faces have said of the newest schema version.
private final class CheckedSchemas: Sendable {
    private struct Finding {
        let hash: String
        let problem: String?
    }

    private let findings = Mutex<[String: Finding]>([:])

    func problem(_ prefix: String, _ hash: String, _ check: () -> String?) -> String? {
        findings.withLock { findings in
            if let known = findings[prefix], known.hash.utf8.elementsEqual(hash.utf8) { return known.problem }
            let finding = Finding(hash: hash, problem: check())
            findings[prefix] = finding
            return finding.problem
        }
    }
}

/// Requests to faces: what the gateway checks before a face sees them.
extension GatewayHandler {
    /// The most that the body of a request to a face may have; an answer with the refusal otherwise.
    func bodyPolicy(for request: HTTPRequest, of face: any Face) -> HTTPBodyPolicy {
        do throws(Problem) {
            let request = try faceRequest(request, face)
            guard request.hasBody else { return .acceptUpTo(Self.maximumUnusedBody) }
            if request.route.takesFile, files == nil { throw Problem(.notFound, "this server keeps no files") }
            let caller = try callerBeforeBody(
                of: request.http, { caller throws(Problem) in try caller.check(request.scope) },
                { () throws(Problem) in try Self.checkMediaType(of: request) })
            if waitingCount >= configuration.maxWaiting { throw tooManyWaiting }
            let context = RecentCaller(caller, at: clock.now())
            if request.route.takesFile {
                return .stream(upTo: faces.maximumFileBytes, caller: Self.name(ofShare: caller), context: context)
            }
            return .acceptUpTo(limits.maxBatchBytes, caller: Self.name(ofShare: caller), context: context)
        } catch {
            return .refuse(respond(to: error, of: face))
        }
    }

    func respond(to request: HTTPRequest, of face: any Face) -> HTTPHandlerResult {
        do throws(Problem) {
            let request = try faceRequest(request, face)
            if request.http.method == .options {
                return .response(options(of: request.http, allow: request.route.allow))
            }
            switch try callerOfComplete(request.http) {
            case .known(let caller): return respond(to: request, of: face, caller)
            case .awaited(let lookup):
                return inTask(of: face) {
                    switch self.respond(to: request, of: face, try await lookup()) {
                    case .response(let response): return response
                    case .task(let work): return await work()
                    }
                }
            }
        } catch {
            return .response(respond(to: error, of: face))
        }
    }

    private func respond(to request: FaceRequest, of face: any Face, _ caller: Caller) -> HTTPHandlerResult {
        do throws(Problem) {
            let device = try counting(caller) { () throws(Problem) in
                try caller.check(request.scope)
                let device = try Self.device(of: request.http, caller)
                try checkRevoked(device)
                if request.hasBody { try Self.checkMediaType(of: request) }
                return device
            }
            let status = try rates.take(.request, of: caller.syncID, device)
            note(device, of: caller)
            let schema = try newestSchema()
            if let problem = faces.problem(of: face, with: schema) { throw Problem(.notReady, problem) }
            let session = GatewaySession(self, caller, device, schema, of: face)
            return try Self.adding(status) { () throws(Problem) in
                if let response = try face.respondAtOnce(to: request, session) { return .response(response) }
                return inTask(of: face) {
                    var response: HTTPResponse
                    do {
                        response = try await face.respond(to: request, session)
                        response.reservation = response.reservation ?? session.takeReservation()
                        response = try await self.reserving(response, for: caller)
                        try self.checkRevoked(device)
                    } catch {
                        response = self.respond(to: await self.delayed(error), of: face)
                        // A conflict has rows, too.
                        response.reservation = session.takeReservation()
                    }
                    self.rates.pulled(response.countedBytes, by: device)
                    return response
                }
            }
        } catch {
            return isDelayed(error, among: waitingCount + 1)
                ? inTask(of: face) { throw error } : .response(respond(to: error, of: face))
        }
    }

    private static func checkMediaType(of request: FaceRequest) throws(Problem) {
        if !request.route.takesFile { try checkMediaType(request.http) }
    }

    /// The device of credentials, else the one that `X-Device-Id` names.
    private static func device(of request: HTTPRequest, _ caller: Caller) throws(Problem) -> Device {
        let header = request.headers.text(of: "x-device-id")
        guard let id = header.map({ KnowledgeID($0) }) ?? caller.device, id != .everyOther else {
            throw Problem(
                .invalidRequest,
                header == nil
                    ? "X-Device-Id is missing, and the credentials name no device"
                    : "X-Device-Id must have 1 to 255 bytes, and not be *")
        }
        try caller.check(id)
        return Device(caller: caller.syncID, knowledgeID: id)
    }

    private func faceRequest(_ request: HTTPRequest, _ face: any Face) throws(Problem) -> FaceRequest {
        try checkHost(request)
        for route in face.routes {
            guard let parameters = route.parameters(in: request.segments) else { continue }
            if route.methods.contains(request.method) || request.method == .options {
                return FaceRequest(http: request, route: route, parameters: parameters)
            }
            throw Problem(allowing: route.allow)
        }
        throw Problem(.notFound, "no resource has this path")
    }

    private func inTask(
        of face: any Face, _ work: @escaping @Sendable () async throws -> HTTPResponse
    ) -> HTTPHandlerResult {
        if waitingCount >= configuration.maxWaiting { return .response(respond(to: tooManyWaiting, of: face)) }
        return inTask {
            do {
                return try await work()
            } catch {
                return self.respond(to: await self.delayed(error), of: face)
            }
        }
    }

    /// Makes what sends one response in pieces, and counts and logs what breaks it off, of which the client learns no code.
    func facePieces() -> FacePieces {
        FacePieces(clock: clock, patience: configuration.keepAlive) { [metrics, logger] error in
            let problem = Problem(error)
            metrics.record(problem)
            logger.notice(
                "A response of a face is broken off",
                [.reason: .string(problem.code.rawValue), .error: .string(problem.detail)])
        }
    }

    private func respond(to problem: Problem, of face: any Face) -> HTTPResponse {
        metrics.record(problem)
        return face.response(to: problem)
    }
}

extension FaceRequest {
    fileprivate var hasBody: Bool { [.post, .put, .patch].contains(http.method) }

    /// What credentials must allow: answers to changes have rows, too, but for files.
    fileprivate var scope: AccessScope {
        if method == .get || http.method == .options { return .read }
        return route.takesFile ? .write : [.read, .write]
    }
}
