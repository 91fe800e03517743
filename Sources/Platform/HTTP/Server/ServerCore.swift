import Glibc
import Synchronization
import ThreadExecutor

/// The state that all connections of a server share.
final class ServerCore: Sendable {
    let configuration: HTTPServerConfiguration
    let handler: any HTTPHandler
    let counters = LiveCounters()
    let bodyBudget: BodyBudget
    let responseBudget: ResponseBudget
    let table: ConnectionTable
    let eventLoop: EventLoop
    let compression: Compression
    /// For large bodies and responses.
    let turns: ThreadTurns<BodyBudget.Holder>
    /// `nil` without TLS.
    let certificate: TLSCertificate?
    let requestTime: UInt64
    let idleTime: UInt64

    /// Set when no new connections are accepted; from then on every response closes its connection.
    let isDraining = Atomic<Bool>(false)

    /// libmicrohttpd's messages while it starts; afterwards `nil`, and messages are reported as events.
    let startLog = Mutex<[String]?>([])

    /// Responses up to this size need no reservation, and are always sent.
    static let smallResponse = 64 << 10

    /// Bodies above this size are handled in turns of their callers: a parser needs a fraction of a millisecond for it.
    static let largeBody = 64 << 10

    /// What of a body is compressed or decompressed in one turn of its caller: about a millisecond.
    static let pieceOfTurn = 128 << 10

    /// How long, in nanoseconds, a client may take to read a response that was sent before its request was complete.
    static let lingerTime: UInt64 = 1_000_000_000

    init(
        configuration: HTTPServerConfiguration, handler: any HTTPHandler, responseBudget: ResponseBudget,
        eventLoop: EventLoop, certificate: TLSCertificate?
    ) throws(ThreadStartError) {
        self.certificate = certificate
        self.configuration = configuration
        self.handler = handler
        self.eventLoop = eventLoop
        bodyBudget = BodyBudget(limit: configuration.maxBytesInFlight)
        self.responseBudget = responseBudget
        table = ConnectionTable(limit: configuration.maxConnections, clientLimit: configuration.maxConnectionsPerClient)
        compression = Compression(
            threshold: configuration.compressionThreshold, inlineLimit: configuration.inlineCompressionLimit,
            level: configuration.compressionLevel)
        // Half of the processors, since the log, the stages and small requests need the others.
        turns = try ThreadTurns(name: "http-large-", count: max(1, DedicatedThread.processors / 2))
        requestTime = configuration.requestTimeout.nanoseconds
        idleTime = configuration.idleTimeout.nanoseconds
    }

    var isSecure: Bool { certificate != nil }

    func report(_ event: HTTPServerEvent) { configuration.onEvent(event) }

    /// Handles a line of libmicrohttpd's log.
    func log(_ line: String) {
        let isStarting = startLog.withLock { lines in
            lines?.append(line)
            return lines != nil
        }
        if !isStarting { report(.library(line)) }
    }

    /// Makes the response of a refusal and counts it.
    func response(for refusal: HTTPRefusal) -> HTTPResponse {
        counters.count(refusal.reason)
        return format(refusal)
    }

    /// Makes the response of a refusal.
    ///
    /// The application formats the body; status and required headers are set here.
    func format(_ refusal: HTTPRefusal) -> HTTPResponse {
        var response = configuration.formatRefusal(refusal)
        if case .stream = response.content {
            response.drop()
            response = HTTPRefusal.plainText(refusal)
        }
        response.status = refusal.reason.status
        response.headers += refusal.fields
        response.isCompressible = false
        return response
    }

    func requestEnded() {
        let left = counters.requestsUnderWay.wrappingSubtract(1, ordering: .sequentiallyConsistent).newValue
        if left == 0, isDraining.load(ordering: .sequentiallyConsistent) { eventLoop.wake() }
    }
}
