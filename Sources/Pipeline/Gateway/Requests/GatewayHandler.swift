import ChangeLog
import FanOutLink
import HTTP
import Observability
import OwnerFileStore
import SyncModel
import Synchronization

/// Responds to requests of the client contract, v1.
package final class GatewayHandler<Log: ChangeLog, Link: FanOutLink, Auth: Authenticator>: HTTPHandler {
    let history: History
    let schemas: @Sendable () -> SchemaHistory
    let limits: SyncLimits
    let configuration: GatewayConfiguration
    let link: Link
    let authenticator: Auth
    let clock: GatewayClock
    let uploads: UploadProducer<Log>
    let pending: PendingBatches
    let outcomes: OutcomeCollector<Link>
    let quota: UploadQuota
    let rates: RateLimits
    /// `nil`: pages of other origins get nothing.
    let crossOrigin: CrossOrigin?
    /// `nil`: not served.
    let demo: DemoPage?
    let metrics: GatewayMetrics
    let logger: Logger
    let backlog: UploadBacklog?
    let windows: UploadWindows?
    let devices: GatewayDevices?
    let tracker: DeviceTracker?
    let positions: FacePositions?
    let faces: GatewayFaces
    /// `nil`: no files are kept.
    let files: OwnerFiles?
    let polls = LongPolls()
    let eventStreams: EventStreams
    /// Pages are reserved in it before they are read.
    let responseBudget: ResponseBudget
    let parsers = BodyParsers()
    private let waiting = Atomic<Int>(0)

    /// - Parameters:
    ///   - log: uploads are appended to it.
    ///   - link: serves pulls and outcomes.
    ///   - history: the epoch and partitions of `log`.
    ///   - schemas: the schema versions that are known at the time of the call; must not block.
    ///   - backlog: the stages report their progress to it; `nil`: uploads are accepted however far the stages are
    ///     behind.
    ///   - devices: `nil`: no device is registered, and none can be revoked.
    ///   - faces: protocols beside the client contract.
    ///   - files: `nil`: faces keep no files of owners.
    ///   - clock: measures waits, rates and the interval of keep-alives.
    package init(
        log: Log, link: Link, authenticator: Auth, history: History, schemas: @escaping @Sendable () -> SchemaHistory,
        limits: SyncLimits = SyncLimits(), configuration: GatewayConfiguration, backlog: UploadBacklog? = nil,
        devices: GatewayDevices? = nil, faces: GatewayFaces = GatewayFaces(),
        files: (any OwnerFileStore)? = nil, logger: Logger = .disabled,
        metrics: GatewayMetrics = GatewayMetrics(),
        clock: some Clock<Duration> = ContinuousClock()
    ) {
        self.history = history
        self.schemas = schemas
        self.limits = limits
        self.configuration = configuration
        self.link = link
        self.backlog = backlog
        self.authenticator = authenticator
        self.metrics = metrics
        self.logger = logger
        self.devices = devices
        tracker = devices.map { DeviceTracker($0.registry, metrics: metrics, logger: logger) }
        positions = devices.map { FacePositions($0.registry, metrics: metrics, logger: logger) }
        self.faces = faces
        self.files = files.map { OwnerFiles($0, metrics: metrics, logger: logger) }
        let clock = GatewayClock(clock)
        self.clock = clock
        uploads = UploadProducer(log: log, history: history, logger: logger, clock: clock)
        pending = PendingBatches(clock: clock)
        outcomes = OutcomeCollector(link: link, clock: clock)
        quota = UploadQuota(
            maximumBytes: configuration.uploadBytesInFlight,
            maximumBytesOfCaller: configuration.callerBytesInFlight)
        rates = RateLimits(
            caller: configuration.callerRates, device: configuration.deviceRates, metrics: metrics, clock: clock)
        crossOrigin = CrossOrigin(
            configuration.corsOrigins, trustsEveryCaller: authenticator.trustsEveryCaller)
        demo = configuration.demo ?? authenticator.trustsEveryCaller ? DemoPage() : nil
        responseBudget = ResponseBudget(
            limit: configuration.server.maxAnswerBytesInFlight, maximumWaiting: configuration.maxWaiting)
        windows = backlog.map { backlog in
            let windows = UploadWindows(
                partitions: history.partitions, target: configuration.callerLag,
                maximumWaitingBytes: configuration.uploadBytesInFlight / 4, clock: clock)
            backlog.report(to: windows)
            return windows
        }
        eventStreams = EventStreams(maximum: configuration.server.maxConnections, clock: clock)
    }

    /// How many requests wait in tasks.
    var waitingCount: Int { waiting.load(ordering: .relaxed) }

    /// Accepts no more uploads, and closes the log's producer once the pending appends have ended.
    package func close() async {
        await uploads.close()
        await tracker?.write()
        await positions?.write()
    }

    /// Sends a comment to every event stream, once in every `keepAlive`, until the task is cancelled.
    func sendKeepAlives() async {
        var next = clock.now()
        while true {
            next += configuration.keepAlive
            do { try await clock.sleep(next) } catch { return }
            eventStreams.sendKeepAlives()
        }
    }

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
            let caller = try callerBeforeBody(
                of: request, { caller throws(Problem) in try caller.check(route) },
                { () throws(Problem) in try Self.checkMediaType(request) })
            let isUpload = route == .sync || route == .upload
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
    ///   - checkCaller: checks a caller that is known already.
    ///   - checkRequest: checks the rest of what is there; a failure counts as a request of a known caller.
    func callerBeforeBody(
        of request: HTTPRequest, _ checkCaller: (Caller) throws(Problem) -> Void,
        _ checkRequest: () throws(Problem) -> Void
    ) throws(Problem) -> CallerLookup {
        let lookup = try authenticator.caller(of: request)
        guard case .known(let caller) = lookup else {
            try checkRequest()
            return lookup
        }
        try rates.check(caller.syncID)
        try counting(caller) { () throws(Problem) in
            try checkCaller(caller)
            try checkRequest()
        }
        return lookup
    }

    /// Responds at once if nothing must be awaited, otherwise in a task.
    package func respond(to request: HTTPRequest) -> HTTPHandlerResult {
        if let face = faces[request.segments] { return respond(to: request, of: face) }
        do throws(Problem) {
            try checkHost(request)
            if let file = try demoFile(request) {
                guard request.method == .options else { return .response(file.response(to: request)) }
                return .response(options(of: request, allow: DemoPage.allow))
            }
            if request.method == .options, let allow = Self.allowedMethods(request) {
                return .response(options(of: request, allow: allow))
            }
            let route = try route(of: request)
            if route == .openAPI { return .response(Documents.openAPI) }
            if route == .errors { return .response(Documents.errors) }
            switch try callerOfComplete(request) {
            case .known(let caller): return try respond(route, request, caller)
            case .awaited(let lookup):
                return inTask {
                    switch try self.respond(route, request, try await lookup()) {
                    case .response(let response): return response
                    case .task(let work): return await work()
                    }
                }
            }
        } catch {
            return .response(respond(to: error))
        }
    }

    func options(of request: HTTPRequest, allow: String) -> HTTPResponse {
        let preflight = crossOrigin?.preflightFields(for: request, methods: allow) ?? []
        return HTTPResponse(status: 204, headers: [HTTPField("Allow", allow)] + preflight)
    }

    /// The caller that was found before the body was read, or found again if that took long.
    func callerOfComplete(_ request: HTTPRequest) throws(Problem) -> CallerLookup {
        if let recent = request.context as? RecentCaller, let caller = recent.caller(at: clock.now()) {
            return .known(caller)
        }
        return try authenticator.caller(of: request)
    }

    private func respond(
        _ route: Route, _ request: HTTPRequest, _ caller: Caller
    ) throws(Problem) -> HTTPHandlerResult {
        try counting(caller) { () throws(Problem) in
            try caller.check(route)
            // Of credentials for one device, whatever the request is about.
            if let id = caller.device { try checkRevoked(Device(caller: caller.syncID, knowledgeID: id)) }
        }
        switch route {
        case .openAPI: return .response(Documents.openAPI)
        case .errors: return .response(Documents.errors)
        case .sync, .upload, .pull:
            let (device, envelope) = try counting(caller) { () throws(Problem) in
                try Self.checkMediaType(request)
                let read = try read(request, route, caller)
                try checkRevoked(read.0)
                return read
            }
            let cost =
                envelope.isUpload ? RateCost(changes: envelope.changeCount, bytes: request.body.count) : .request
            let status = try rates.take(cost, of: caller.syncID, device)
            note(device, of: caller, envelope)
            return try Self.adding(status) { () throws(Problem) in
                try respond(route, request, caller, device, envelope)
            }
        case .batch: return try batch(request, caller)
        case .device:
            return request.method == .delete ? try revokeDevice(request, caller) : try nameDevice(request, caller)
        case .watch, .devices, .schema:
            let status = try rates.take(.request, of: caller.syncID)
            return try Self.adding(status) { () throws(Problem) in
                switch route {
                case .watch: watch(request, caller)
                case .devices: try listDevices(request, caller)
                default: .response(try schema(request))
                }
            }
        }
    }

    /// Whose share of the bodies in memory a body counts for; all whose caller is not known yet have one together, under a name
    /// that no syncId can have.
    static func name(ofShare caller: CallerLookup) -> String {
        if case .known(let caller) = caller { caller.syncID.text } else { "\u{0}" }
    }

    /// The version that uploads use by default and that responses name.
    func newestSchema() throws(Problem) -> SchemaHistory.Entry {
        guard let newest = schemas().newest else { throw Problem(.notReady, "no schema version is registered yet") }
        return newest
    }

    /// Runs checks of a request whose device is not known yet; one that fails counts as a request of the caller alone.
    func counting<Result>(
        _ caller: Caller, _ checks: () throws(Problem) -> Result
    ) throws(Problem) -> Result {
        do throws(Problem) {
            return try checks()
        } catch {
            throw error.adding(try rates.take(.request, of: caller.syncID))
        }
    }

    /// Adds the headers about the limits to the response of a request that has taken its tokens.
    static func adding(
        _ status: RateLimitStatus?, _ work: () throws(Problem) -> HTTPHandlerResult
    ) throws(Problem) -> HTTPHandlerResult {
        do throws(Problem) {
            return try work().adding(status)
        } catch {
            throw error.adding(status)
        }
    }

    private func read(
        _ request: HTTPRequest, _ route: Route, _ caller: Caller
    ) throws(Problem) -> (Device, Envelope) {
        let envelope = try parse(request.body, fields: route.fields)
        guard let knowledgeID = envelope.knowledgeID else { throw Problem(.invalidRequest, "knowledgeId is missing") }
        let maximum = limits.outcome.maxChanges
        guard envelope.changeCount <= maximum else {
            throw Problem(.batchTooLarge, "\(envelope.changeCount) changes, at most \(maximum) are allowed")
        }
        try caller.check(knowledgeID)
        return (Device(caller: caller.syncID, knowledgeID: knowledgeID), envelope)
    }

    private func respond(
        _ route: Route, _ request: HTTPRequest, _ caller: Caller, _ device: Device, _ envelope: Envelope
    ) throws(Problem) -> HTTPHandlerResult {
        if route == .pull {
            return envelope.include.isEmpty && envelope.wait == .zero
                ? try pullAtOnce(caller, envelope)
                    ?? inTask(of: device) { try await self.pull(caller, device, envelope) }
                : inTask(of: device) { try await self.pull(caller, device, envelope) }
        }
        if route == .sync { return inTask(of: device) { try await self.sync(caller, device, envelope) } }
        let wait = Preference.wait(of: request)
        return inTask { try await self.upload(caller, device, envelope, wait: wait) }
    }

    /// Refuses other names than loopback's where nobody has to prove an identity: a web page whose name resolves to this machine
    /// could else send requests (DNS rebinding).
    func checkHost(_ request: HTTPRequest) throws(Problem) {
        guard authenticator.trustsEveryCaller, let host = request.headers.text(of: "host") else { return }
        guard Loopback.isNamed(by: host) else {
            throw Problem(.forbidden, "with auth none the header Host must name loopback, as localhost does")
        }
    }

    private func route(of request: HTTPRequest) throws(Problem) -> Route {
        guard let route = Route(request.segments) else { throw Problem(.notFound, "no resource has this path") }
        if route.methods.contains(request.method) || request.method == .options { return route }
        throw Problem(allowing: route.allow)
    }

    /// The methods that `OPTIONS` lists; `nil` for an unknown path.
    private static func allowedMethods(_ request: HTTPRequest) -> String? {
        if request.rawPath.utf8.elementsEqual("*".utf8) { return "GET, HEAD, POST, PATCH, DELETE, OPTIONS" }
        return Route(request.segments)?.allow
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

    private func parse(_ body: HTTPBody, fields: Envelope.Fields) throws(Problem) -> Envelope {
        guard body.count <= limits.maxBatchBytes else {
            throw Problem(.batchTooLarge, "\(body.count) bytes, at most \(limits.maxBatchBytes) are allowed")
        }
        return try parsers.parse(body) { (root) throws(Problem) in try Envelope(root, fields: fields) }
    }

    // MARK: Tasks

    /// Runs work that waits in a task; refuses it if `maxWaiting` requests wait already.
    func inTask(_ work: @escaping @Sendable () async throws -> HTTPResponse) -> HTTPHandlerResult {
        // Counted in the task, because a task whose client has disconnected may never run.
        if waitingCount >= configuration.maxWaiting { return .response(respond(to: tooManyWaiting)) }
        return .task {
            let count = self.waiting.wrappingAdd(1, ordering: .relaxed).newValue
            defer { self.waiting.wrappingSubtract(1, ordering: .relaxed) }
            guard count <= self.configuration.maxWaiting else { return self.respond(to: self.tooManyWaiting) }
            do {
                return try await work()
            } catch {
                return self.respond(to: Problem(error))
            }
        }
    }

    /// As ``inTask(_:)``, and shows nothing to a device that was revoked meanwhile.
    func inTask(
        of device: Device, _ work: @escaping @Sendable () async throws -> HTTPResponse
    ) -> HTTPHandlerResult {
        inTask {
            let response = try await work()
            try self.checkRevoked(device)
            return response
        }
    }

    /// Reserves what a page may have, before it is read.
    func reservePage(
        of bytes: Int? = nil, for caller: Caller, until deadline: Duration
    ) async throws(Problem) -> ResponseReservation {
        do throws(ResponseBudget.Refusal) {
            return try await responseBudget.reserve(bytes ?? configuration.pageBytes, for: caller.syncID.text) {
                [clock] in
                try await clock.sleep(deadline)
            }
        } catch {
            throw Problem(.overloaded, "the responses that clients have not read yet have reached their limit")
        }
    }

    private func respond(to problem: Problem) -> HTTPResponse {
        metrics.record(problem)
        return problem.response
    }

    var tooManyWaiting: Problem {
        Problem(.overloaded, "\(configuration.maxWaiting) requests are waiting already")
    }
}

extension Problem {
    /// The problem for an error of the log or the fan-out.
    init(_ error: any Error) {
        switch error {
        case let problem as Problem: self = problem
        case FanOutError.pending:
            self.init(
                .outcomePending,
                "the batch is durable, its outcome is not known yet: repeat the request with the same batch number")
        case FanOutError.notReady(let reason): self.init(.notReady, reason)
        case FanOutError.closed: self.init(.notReady, "the server is stopping")
        case let error as ChangeLogError where error.code == .storageFull:
            self.init(.storageFull, "the log has no space left for uploads", retryAfter: 5)
        case let error as ChangeLogError:
            if case .recordTooLarge = error.code {
                self.init(.batchTooLarge, "the batch is larger than the log's largest record")
            } else {
                self.init(.notReady, "uploads cannot be appended to the log at the moment")
            }
        default: self.init(.notReady, "the request was cancelled")
        }
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
