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
    /// Pages are reserved in it before they are read, other large responses before they are sent.
    let responseBudget: ResponseBudget
    let parsers = BodyParsers()
    /// How many requests wait in tasks.
    let waiting = Atomic<Int>(0)

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
        windows = backlog.map { [rates] backlog in
            let windows = UploadWindows(
                partitions: history.partitions, target: configuration.callerLag,
                maximumWaitingBytes: configuration.uploadBytesInFlight / 4, clock: clock
            ) { part in
                rates.touched(part.touchedBytes, by: part.device)
            }
            backlog.report(to: windows)
            return windows
        }
        eventStreams = EventStreams(maximum: configuration.server.maxConnections, clock: clock)
    }

    /// Accepts no more uploads, and closes the log's producer once the pending appends have ended.
    package func close() async {
        await uploads.close()
        await writeDevicesNow()
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
            return refuse(error)
        }
    }

    func options(of request: HTTPRequest, allow: String) -> HTTPResponse {
        let preflight = crossOrigin?.preflightFields(for: request, methods: allow) ?? []
        return HTTPResponse(status: 204, headers: [HTTPField("Allow", allow)] + preflight)
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
            let (device, envelope) = try counting(caller, bytes: request.body.count) { () throws(Problem) in
                try Self.checkMediaType(request)
                let read = try read(request, route, caller)
                try checkRevoked(read.0)
                return read
            }
            let status = try rates.take(
                Self.cost(of: envelope, in: request, route, caller), of: caller.syncID, device)
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
                default: respond(with: try schema(request), for: caller)
                }
            }
        }
    }

    private static func cost(
        of envelope: Envelope, in request: HTTPRequest, _ route: Route, _ caller: Caller
    ) -> RateCost {
        guard envelope.isUpload else { return route == .upload ? .request : .pull }
        let (bytes, changes) = (envelope.changes?.byteCount ?? 0, envelope.changeCount)
        return RateCost(
            changes: changes, bytes: request.body.count,
            logged: RateCost.logged(bytes: bytes, changes: changes, of: caller), isPull: route != .upload)
    }

    /// The version that uploads use by default and that responses name.
    func newestSchema() throws(Problem) -> SchemaHistory.Entry {
        guard let newest = schemas().newest else { throw Problem(.notReady, "no schema version is registered yet") }
        return newest
    }

    /// The version that a request names where the device has it from another gateway of this history, and this gateway has yet to
    /// learn it; `nil` for a version that is known, and for any that is not said to be of this history.
    ///
    /// To check the changes against an older version would refuse their newer columns, and to name that one in an answer would
    /// take the device back to it.
    func versionAhead(in envelope: Envelope) -> String? {
        guard let version = envelope.schemaVersion, SchemaVersion.isHash(version), let epoch = envelope.epoch,
            epoch.utf8.elementsEqual(history.epoch.utf8), schemas()[version] == nil
        else { return nil }
        return version
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
                ? try pullAtOnce(caller, device, envelope)
                    ?? inTask(of: device) { try await self.pull(caller, device, envelope) }
                : inTask(of: device) { try await self.pull(caller, device, envelope) }
        }
        if route == .sync { return inTask(of: device) { try await self.sync(caller, device, envelope) } }
        let wait = Preference.wait(of: request)
        return inTask {
            // Accepted also where the device was revoked meanwhile.
            let response = try await self.upload(caller, device, envelope, wait: wait)
            self.rates.pulled(response.countedBytes, by: device)
            return response
        }
    }

    func route(of request: HTTPRequest) throws(Problem) -> Route {
        guard let route = Route(request.segments) else { throw Problem(.notFound, "no resource has this path") }
        if route.methods.contains(request.method) || request.method == .options { return route }
        throw Problem(allowing: route.allow)
    }

    /// The methods that `OPTIONS` lists; `nil` for an unknown path.
    private static func allowedMethods(_ request: HTTPRequest) -> String? {
        if request.rawPath.utf8.elementsEqual("*".utf8) { return "GET, HEAD, POST, PATCH, DELETE, OPTIONS" }
        return Route(request.segments)?.allow
    }

    private func parse(_ body: HTTPBody, fields: Envelope.Fields) throws(Problem) -> Envelope {
        guard body.count <= limits.maxBatchBytes else {
            throw Problem(.batchTooLarge, "\(body.count) bytes, at most \(limits.maxBatchBytes) are allowed")
        }
        return try parsers.parse(body) { (root) throws(Problem) in try Envelope(root, fields: fields) }
    }

    func respond(to problem: Problem) -> HTTPResponse {
        metrics.record(problem)
        return problem.response
    }
}
