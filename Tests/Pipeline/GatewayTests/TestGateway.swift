import ChangeLog
import Configuration
import FanOutLink
import Gateway
import HTTP
import Metrics
import Observability
import SyncModel
import SyncWire
import TestClocks
import Testing

/// A gateway on a free port with a log, a link and a clock that the test holds.
struct TestGateway: Sendable {
    static let epoch = "e1"
    static let version = "00000000000000000000000000000002"
    static let oldVersion = "00000000000000000000000000000001"

    let log: MemoryLog
    let link: ScriptedLink
    let clock: ManualClock
    let service: GatewayService<MemoryLog, ScriptedLink, ScriptedAuthentication>
    let handler: GatewayHandler<MemoryLog, ScriptedLink, ScriptedAuthentication>
    let port: UInt16

    /// What may be set before the start.
    struct Setup: Sendable {
        var configuration = GatewayConfiguration()
        var limits = SyncLimits()
        var log = MemoryLog()
        /// The versions that are known at that moment.
        var schemas: @Sendable () -> SchemaHistory = { TestGateway.schemas }
        var authentication = ScriptedAuthentication()
        var backlog: UploadBacklog?
        var devices: GatewayDevices?
        var faces = GatewayFaces()
        var logger = Logger.disabled
        var metrics = MetricRegistry()
        var patience: Duration = .seconds(10)
    }

    /// As a gateway knows it that has yet to learn the newest version.
    static var olderSchemas: SchemaHistory {
        var history = SchemaHistory()
        for entry in schemas.entries.dropLast() { history.append(entry) }
        return history
    }

    static var schemas: SchemaHistory {
        var history = SchemaHistory()
        for (ordinal, hash) in [oldVersion, version].enumerated() {
            history.append(
                SchemaHistory.Entry(
                    version: SchemaVersion(ordinal: ordinal + 1, hash: hash),
                    schema: Schema(tables: [
                        Table(
                            name: "person", policy: .lastWriteWins,
                            columns: [
                                Column(name: "name", type: .text, isNullable: false, maximumLength: 50),
                                Column(
                                    name: "pay", type: .decimal(precision: 10, scale: 2),
                                    defaultValue: Array("\"0.00\"".utf8)),
                            ]),
                        Table(
                            name: "address",
                            columns: [
                                Column(name: "owner", type: .text, references: "person", onDelete: .reassign)
                            ]),
                    ])))
        }
        return history
    }

    /// One exchange over a connection of its own.
    func exchange(
        _ method: String, _ target: String, as caller: String? = "abc", links: String? = nil, headers: [String] = [],
        _ body: String? = nil
    ) async throws -> HTTPClient.Answer {
        let client = try HTTPClient(port: port)
        try await client.send(
            method, target, headers: Self.headers(caller, links) + headers, body: body.map { Array($0.utf8) })
        return try await client.answer(toHead: method == "HEAD")
    }

    /// The headers that name a caller.
    static func headers(_ caller: String? = "abc", _ links: String? = nil) -> [String] {
        [caller.map { "X-Sync-Id: \($0)" }, links.map { "X-Sync-Links: \($0)" }].compactMap(\.self)
    }

    /// The batches that the log has.
    var batches: [ChangeBatch] {
        get throws { try log.records.map { try ChangeBatch(decoding: $0.value) } }
    }
}

/// Runs a gateway for the time of a test, stops it and checks that nothing is left behind.
func withGateway(
    _ prepare: (inout TestGateway.Setup) -> Void = { _ in }, test: (TestGateway) async throws -> Void
) async throws {
    var setup = TestGateway.Setup()
    setup.configuration.address = NetworkAddress(host: "127.0.0.1", port: 0)!
    setup.configuration.server.threads = 2
    // The clock stands still, so that buckets are never refilled.
    setup.configuration.callerRates = Rates()
    setup.configuration.deviceRates = Rates()
    setup.configuration.refusalDelay = .zero
    prepare(&setup)
    let link = ScriptedLink()
    let clock = ManualClock()
    let handler = GatewayHandler(
        log: setup.log, link: link, authenticator: setup.authentication,
        history: History(epoch: TestGateway.epoch, partitions: setup.log.partitionCount),
        schemas: setup.schemas, limits: setup.limits, configuration: setup.configuration,
        backlog: setup.backlog, devices: setup.devices, faces: setup.faces, logger: setup.logger,
        metrics: GatewayMetrics(setup.metrics),
        clock: clock)
    let service = GatewayService(handler, logger: setup.logger, patience: setup.patience)
    let bound = try await service.start()
    let gateway = TestGateway(
        log: setup.log, link: link, clock: clock, service: service, handler: handler, port: bound.port)
    do {
        try await test(gateway)
    } catch {
        await service.stop()
        throw error
    }
    await service.stop()
    #expect(service.counters.http.connections == 0)
    // Tasks that the server gave up on still end by themselves.
    while service.counters.waiting > 0 { await Task.yield() }
    #expect(service.counters.watchers == 0)
    #expect(service.counters.uploadBytes == 0)
    #expect(link.subscriberCount == 0)
    #expect(setup.log.openProducers == 0)
}

/// Believes the headers, but for some callers; or checks tokens.
struct ScriptedAuthentication: Authenticator {
    var believesHeaders = true
    var tokens: TokenAuthenticator?

    var trustsEveryCaller: Bool { believesHeaders && tokens == nil }

    func caller(of request: HTTPRequest) throws(Problem) -> CallerLookup {
        if let tokens { return try tokens.caller(of: request) }
        let lookup = try NoAuthentication().caller(of: request)
        guard case .known(let caller) = lookup else { return lookup }
        if caller.syncID.text.utf8.elementsEqual("banned".utf8) { throw Problem(.forbidden, "this caller is banned") }
        if caller.syncID.text.utf8.elementsEqual("brief".utf8) {
            return .known(Caller(syncID: caller.syncID, validFor: .seconds(20)))
        }
        return lookup
    }
}

extension StreamReport {
    /// All uploads of a partition up to this one can be pulled.
    init(_ upload: UploadReference) {
        self.init(
            partition: upload.partition, uploads: [upload.partition: UploadProgress(offset: upload.offset, part: 0)])
    }
}

extension UploadBacklog {
    /// All uploads of a partition up to this one can be pulled.
    func passed(_ upload: UploadReference) { passed(StreamReport(upload)) }
}

extension SyncID {
    static let abc = SyncID(unchecked: "abc")
    static let xyz = SyncID(unchecked: "xyz")
}

extension KnowledgeID {
    static let k1 = KnowledgeID(unchecked: "k1")
    static let k2 = KnowledgeID(unchecked: "k2")
}

/// What the answers to callers without links begin with.
let answerHead =
    #"{"syncId":"abc","epoch":"e1","schemaVersion":"00000000000000000000000000000002","#
    + #""owners":[{"syncId":"abc","access":"write"}],"#

/// What the answers of pulls that found nothing end with.
let nothingMore = #""hasMore":false,"revoked":[],"resync":[]}"#

extension OwnerRows {
    /// Rows as JSON texts, and the entries after them.
    static func rows(
        _ rows: [String] = [], _ entries: [(KnowledgeID, Int64)] = [], floor: Int64? = nil, head: Int64 = 0,
        hasMore: Bool = false
    ) -> OwnerRows {
        OwnerRows(
            json: Array(rows.joined(separator: ",").utf8), count: rows.count,
            entries: entries.map { ($0.0, TimeStamp($0.1)) }, floor: floor.map { TimeStamp($0) }, head: TimeStamp(head),
            hasMore: hasMore)
    }
}

extension PartOutcome {
    /// Results by their index in the request; changes of the same row have the same id.
    static func results(
        _ results: [(Int, ChangeResult.Status, heldFrom: Int64?)], summary: BatchSummary? = nil,
        isRepeat: Bool = false, rows: [Int: String] = [:], ids: [Int: String] = [:], head: Int64 = 0
    ) -> PartOutcome {
        // Every row that is there, also when a change before shows it.
        let located = Set(rows.keys).union(ids.keys)
        return PartOutcome(
            isRepeat: isRepeat,
            results: results.map {
                ChangeResult(
                    index: $0.0, table: 0, id: RowID(unchecked: ids[$0.0] ?? "r\($0.0)"), status: $0.1,
                    heldFrom: $0.heldFrom.map { TimeStamp($0) },
                    locator: located.contains($0.0) ? RowLocator(knowledgeID: .k1, timeStamp: TimeStamp(1)) : nil)
            },
            summary: summary, rows: rows.mapValues { Array($0.utf8) }, head: TimeStamp(head))
    }
}

extension ChangeResult.Status {
    static func applied(_ timeStamp: Int64, _ knowledgeID: KnowledgeID? = .k1) -> Self {
        .applied(timeStamp: TimeStamp(timeStamp), version: 1, knowledgeID: knowledgeID)
    }
}
