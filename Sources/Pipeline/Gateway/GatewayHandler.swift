import ChangeLog
import FanOutLink
import HTTP
import Observability
import SyncModel
import Synchronization

/// Answers requests: the client contract, v1.
package final class GatewayHandler<Log: ChangeLog, Link: FanOutLink, Auth: Authenticator>: HTTPHandler {
    let history: History
    let schemas: @Sendable () -> SchemaHistory
    let limits: SyncLimits
    let configuration: GatewayConfiguration
    let link: Link
    let time: GatewayDeadline
    let uploads: Uploads<Log>
    let pending: PendingBatches
    let outcomes: OutcomeCollector<Link>
    let quota: UploadQuota
    let metrics: GatewayMetrics
    let backlog: UploadBacklog?
    let polls = LongPolls()
    let watchers: Watchers
    private let authenticator: Auth
    private let parsers = BodyParsers()
    private let waiting = Atomic<Int>(0)

    package init(
        log: Log, link: Link, authenticator: Auth, history: History, schemas: @escaping @Sendable () -> SchemaHistory,
        limits: SyncLimits, configuration: GatewayConfiguration, backlog: UploadBacklog?, logger: Logger,
        metrics: GatewayMetrics, time: GatewayDeadline
    ) {
        self.history = history
        self.schemas = schemas
        self.limits = limits
        self.configuration = configuration
        self.link = link
        self.backlog = backlog
        self.authenticator = authenticator
        self.metrics = metrics
        self.time = time
        uploads = Uploads(log: log, history: history, logger: logger, time: time)
        pending = PendingBatches(time: time)
        outcomes = OutcomeCollector(link: link, time: time)
        quota = UploadQuota(
            maximumBytes: configuration.uploadBytesInFlight,
            maximumBytesOfCaller: configuration.callerBytesInFlight,
            changesPerSecond: configuration.callerChangesPerSecond, time: time)
        watchers = Watchers(maximum: configuration.server.maxConnections, time: time)
    }

    /// How many requests wait in tasks.
    var waitingCount: Int { waiting.load(ordering: .relaxed) }

    /// Takes no more uploads, and ends the log's producer after those under way.
    package func close() async { await uploads.close() }

    /// Refuses what cannot succeed before its body is read.
    package func admit(_ request: HTTPRequest) -> HTTPAdmission {
        do throws(Problem) {
            let route = try route(of: request)
            // What has no use for a body may send one, as HTTP allows.
            guard route.method == .post, request.method == .post else { return .acceptUpTo(limits.maxBatchBytes) }
            _ = try authenticator.caller(of: request)
            try Self.checkMediaType(request)
            if route != .pull, waitingCount >= configuration.maxWaiting { throw crowded }
            return .acceptUpTo(limits.maxBatchBytes)
        } catch {
            metrics.note(error)
            return .refuse(error.response)
        }
    }

    /// Answers a request: at once where nothing waits, else in a task.
    package func respond(to request: HTTPRequest) -> HTTPAnswer {
        do throws(Problem) {
            if request.method == .options, let allow = Self.allowed(request) {
                return .response(HTTPResponse(status: 204, headers: [HTTPField("Allow", allow)]))
            }
            let route = try route(of: request)
            switch route {
            case .openAPI: return .response(Documents.openAPI)
            case .errors: return .response(Documents.errors)
            case .sync, .upload, .pull:
                let caller = try authenticator.caller(of: request)
                try Self.checkMediaType(request)
                return try answer(route, request, caller, read(request.body, fields: route.fields))
            case .batch: return try batch(request, try authenticator.caller(of: request))
            case .watch: return watch(request, try authenticator.caller(of: request))
            case .schema:
                _ = try authenticator.caller(of: request)
                return .response(try schema(request))
            }
        } catch {
            metrics.note(error)
            return .response(error.response)
        }
    }

    /// The version that uploads are stamped with by default and that answers name.
    func newestSchema() throws(Problem) -> SchemaHistory.Entry {
        guard let newest = schemas().newest else { throw Problem(.notReady, "no schema is known yet") }
        return newest
    }

    private func answer(
        _ route: Route, _ request: HTTPRequest, _ caller: Caller, _ envelope: Envelope
    ) throws(Problem) -> HTTPAnswer {
        guard let knowledgeID = envelope.knowledgeID else { throw Problem(.invalidRequest, "knowledgeId is missing") }
        let device = Device(caller: caller.syncID, knowledgeID: knowledgeID)
        if route == .pull {
            return envelope.include.isEmpty && envelope.wait == .zero
                ? try pullAtOnce(caller, envelope) ?? inTask { try await self.pull(caller, device, envelope) }
                : inTask { try await self.pull(caller, device, envelope) }
        }
        guard envelope.changeCount <= limits.maxChanges else {
            throw Problem(.batchTooLarge, "\(envelope.changeCount) changes, at most \(limits.maxChanges) are allowed")
        }
        if route == .sync { return inTask { try await self.sync(caller, device, envelope) } }
        let wait = Preference.wait(of: request)
        return inTask { try await self.upload(caller, device, envelope, wait: wait) }
    }

    private func route(of request: HTTPRequest) throws(Problem) -> Route {
        guard let route = Route(request.segments) else { throw Problem(.notFound, "there is nothing here") }
        if request.method == route.method || (request.method == .head && route.method == .get) { return route }
        if request.method == .options { return route }
        var problem = Problem(.methodNotAllowed, "allowed: \(route.allow)")
        problem.headers = [HTTPField("Allow", route.allow)]
        throw problem
    }

    /// What `OPTIONS` answers; `nil` where there is nothing.
    private static func allowed(_ request: HTTPRequest) -> String? {
        if request.rawPath.utf8.elementsEqual("*".utf8) { return "GET, HEAD, POST, OPTIONS" }
        return Route(request.segments)?.allow
    }

    private static func checkMediaType(_ request: HTTPRequest) throws(Problem) {
        guard let type = request.headers.text(of: "content-type") else { return }
        if type.utf8.elementsEqual("application/json".utf8) { return }
        let parts = type.lowercased().split(separator: ";").map(\.trimmingASCIISpaces)
        let isJSON = parts.first.map { $0.utf8.elementsEqual("application/json".utf8) } ?? false
        let isUTF8 = parts.dropFirst().allSatisfy { parameter in
            !parameter.utf8.starts(with: "charset=".utf8)
                || parameter.utf8.filter { $0 != UInt8(ascii: "\"") }.elementsEqual("charset=utf-8".utf8)
        }
        guard isJSON, isUTF8 else { throw Problem(.unsupportedMediaType, "the body is application/json in UTF-8") }
    }

    private func read(_ body: HTTPBody, fields: Envelope.Fields) throws(Problem) -> Envelope {
        guard body.count <= limits.maxBatchBytes else {
            throw Problem(.batchTooLarge, "\(body.count) bytes, at most \(limits.maxBatchBytes) are allowed")
        }
        return try parsers.parse(body) { (root) throws(Problem) in try Envelope(root, fields: fields) }
    }

    // MARK: Tasks

    /// Runs work that waits; refuses it when too much waits already.
    func inTask(_ work: @escaping @Sendable () async throws -> HTTPResponse) -> HTTPAnswer {
        // Counted within the task, which may never run: its client can be gone by then.
        if waitingCount >= configuration.maxWaiting { return .response(refusal(crowded)) }
        return .task {
            let count = self.waiting.wrappingAdd(1, ordering: .relaxed).newValue
            defer { self.waiting.wrappingSubtract(1, ordering: .relaxed) }
            guard count <= self.configuration.maxWaiting else { return self.refusal(self.crowded) }
            do {
                return try await work()
            } catch {
                return self.refusal(Problem(error))
            }
        }
    }

    private func refusal(_ problem: Problem) -> HTTPResponse {
        metrics.note(problem)
        return problem.response
    }

    private var crowded: Problem { Problem(.overloaded, "\(configuration.maxWaiting) requests wait already") }
}

extension Problem {
    /// What a stage said, as the contract says it.
    init(_ error: any Error) {
        switch error {
        case let problem as Problem: self = problem
        case FanOutError.pending:
            self.init(
                .outcomePending, "the batch is durable, its outcome not known yet: ask again with the same number")
        case FanOutError.notReady(let reason): self.init(.notReady, reason)
        case FanOutError.closed: self.init(.notReady, "the server stops")
        case let error as ChangeLogError where error.code == .storageFull:
            self.init(.storageFull, "there is no room for more uploads", retryAfter: 5)
        case let error as ChangeLogError:
            if case .recordTooLarge = error.code {
                self.init(.batchTooLarge, "the batch is larger than the log takes")
            } else {
                self.init(.notReady, "the log does not take uploads at the moment")
            }
        default: self.init(.notReady, "the request was given up")
        }
    }
}

extension Substring {
    /// Without spaces and tabs at both ends.
    fileprivate var trimmingASCIISpaces: Substring {
        var text = self
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }
}
