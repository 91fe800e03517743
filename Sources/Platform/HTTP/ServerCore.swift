import Synchronization

/// What all connections of a server share.
final class ServerCore: Sendable {
    let configuration: HTTPServerConfiguration
    let handler: any HTTPHandler
    let counters = LiveCounters()
    let budget: ByteBudget
    let answers: ByteBudget
    let table: ConnectionTable
    let supervisor: Supervisor
    let compression: Compression
    let requestTime: UInt64
    let idleTime: UInt64

    /// Set when no new connections are taken; every answer from then on ends its connection.
    let isDraining = Atomic<Bool>(false)

    /// What the library complained about while it started; `nil` once it has, when its log goes to the application.
    let startLog = Mutex<[String]?>([])

    /// Answers up to this size are always sent: everybody else goes on while a few do not read.
    static let smallAnswer = 64 << 10

    /// How long a client that was refused in the middle of its body may take to read why.
    static let farewellTime: UInt64 = 1_000_000_000

    init(configuration: HTTPServerConfiguration, handler: any HTTPHandler, supervisor: Supervisor) {
        self.configuration = configuration
        self.handler = handler
        self.supervisor = supervisor
        budget = ByteBudget(limit: configuration.maxBytesInFlight)
        answers = ByteBudget(limit: configuration.maxAnswerBytesInFlight)
        table = ConnectionTable(limit: configuration.maxConnections, clientLimit: configuration.maxConnectionsPerClient)
        compression = Compression(
            threshold: configuration.compressionThreshold, inlineLimit: configuration.inlineCompressionLimit,
            level: configuration.compressionLevel)
        requestTime = configuration.requestTimeout.nanoseconds
        idleTime = configuration.idleTimeout.nanoseconds
    }

    var isSecure: Bool { configuration.tls != nil }

    /// Tells the application.
    func report(_ event: HTTPServerEvent) {
        configuration.onEvent(event)
    }

    /// Takes a line of the library's log.
    func log(_ line: String) {
        let isStarting = startLog.withLock { lines in
            lines?.append(line)
            return lines != nil
        }
        if !isStarting { report(.library(line)) }
    }

    /// Makes the answer of a refusal and counts it.
    ///
    /// Status and the headers that belong to it stand whatever the application formats.
    func response(for refusal: HTTPRefusal) -> HTTPResponse {
        counters.count(refusal.reason)
        return format(refusal)
    }

    /// Makes the answer of a refusal that is counted elsewhere.
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

    /// A request has ended, whichever way.
    func requestEnded() {
        let left = counters.requestsUnderWay.wrappingSubtract(1, ordering: .sequentiallyConsistent).newValue
        if left == 0, isDraining.load(ordering: .sequentiallyConsistent) { supervisor.wake() }
    }
}
