import FanOutLink
import LinkWire
import Metrics
import Observability
import SyncModel
import SyncWire
import ZeroMQ

/// The work of a ``FanOutServer``'s thread: takes what gateways say and what has come for them.
final class ServerLoop {
    /// More gateways than any cluster has.
    private static let maximumGateways = 1024
    /// The owners that one gateway may subscribe to: its long polls and watchers, some times over.
    static let maximumSubscriptions = 1 << 18
    /// Messages taken of one wait, so that answers get their turn.
    private static let messagesInARow = 256

    let sockets: ServerSockets
    let inbox: ServerInbox
    let fanOut: any FanOutLink
    let configuration: FanOutServerConfiguration
    let logger: Logger
    let metrics: LinkMetrics
    let partitioning: Partitioning
    let limits: WireLimits
    private let maximumMessageBytes: Int
    private var description: LinkDescription
    private var gateways: [[UInt8]: ServedGateway] = [:]
    private var ids: [Int: [UInt8]] = [:]
    private var lastNumber = 0
    /// Questions under way, those of gateways that have gone included.
    var underWay = 0
    /// How far uploads have passed, for gateways that come later.
    private var passed: [Int: Int64] = [:]
    private var refusals = RefusalLog()

    init(
        sockets: ServerSockets, inbox: ServerInbox, fanOut: any FanOutLink, description: LinkDescription,
        configuration: FanOutServerConfiguration, link: LinkConfiguration, logger: Logger, metrics: LinkMetrics
    ) {
        self.sockets = sockets
        self.inbox = inbox
        self.fanOut = fanOut
        self.description = description
        self.configuration = configuration
        self.logger = logger
        self.metrics = metrics
        partitioning = Partitioning(count: description.partitions)
        maximumMessageBytes = link.maximumMessageBytes
        limits = WireLimits(
            byteCount: link.maximumMessageBytes, fieldCount: WireLimits.standard.fieldCount,
            depth: WireLimits.standard.depth)
    }

    /// Serves until the inbox says stop.
    func run() throws {
        defer { for gateway in gateways.values { gateway.leave() } }
        let all = sockets.all
        var isStopping = false
        while !isStopping {
            let ready = try inbox.bell.wait(for: all)
            let contents = inbox.take()
            isStopping = contents.isStopping
            try handle(contents)
            if ready[0] { try takeMessages() }
            if ready[1] { try takeEvents() }
            if ready.count > 2, let door = sockets.door { note(.notAdmitted, count: try door.answer()) }
            // Last: what gateways have said meanwhile counts, however late the thread comes to it.
            for _ in 0..<contents.beats { try beat() }
        }
    }

    // MARK: What has come for gateways

    private func handle(_ contents: ServerInbox.Contents) throws {
        if let description = contents.description, description != self.description {
            self.description = description
            let bytes = LinkReply.description(description).encode()
            for gateway in gateways.values { try send(bytes, to: gateway) }
        }
        for (number, moves) in contents.moves {
            guard let gateway = gateway(number) else { continue }
            for (owner, head) in moves where gateway.subscriptions[owner] != nil {
                gateway.owed.remove(owner)
                gateway.moves[owner] = max(head, gateway.moves[owner] ?? .zero)
            }
        }
        for (partition, offset) in contents.passed {
            passed[partition] = max(offset, passed[partition] ?? 0)
            for gateway in gateways.values where gateway.wantsPassed { gateway.passed[partition] = passed[partition] }
        }
        for (number, question, bytes) in contents.answers {
            underWay -= 1
            guard let question else { continue }
            metrics.served.add()
            guard let gateway = gateway(number), gateway.tasks.removeValue(forKey: question) != nil else {
                continue
            }
            try answer(question, bytes, to: gateway)
        }
        metrics.underWay.set(underWay)
        for gateway in gateways.values { try tell(gateway) }
    }

    private func gateway(_ number: Int) -> ServedGateway? { ids[number].flatMap { gateways[$0] } }

    private func answer(_ number: Int64, _ bytes: [UInt8], to gateway: ServedGateway) throws {
        let isTooLarge = bytes.count > maximumMessageBytes
        // An answer alone on its way may be of any size.
        let isCrowded = gateway.unread > 0 && gateway.unread + bytes.count > configuration.maximumUnreadBytes
        guard isTooLarge || isCrowded else { return try send(bytes, to: gateway) }
        try fail(
            number,
            isTooLarge
                ? "the answer has \(bytes.count) bytes, more than link.max-message-bytes"
                : "the gateway has not read the answers before", to: gateway)
    }

    /// Answers that there is no answer.
    func fail(_ number: Int64, _ reason: String, to gateway: ServedGateway) throws {
        try send(LinkReply.answer(number: number, .failure(.notReady(reason))).encode(), to: gateway)
    }

    /// Tells a gateway that reads what moved and what passed.
    private func tell(_ gateway: ServedGateway) throws {
        guard !gateway.moves.isEmpty || !gateway.passed.isEmpty,
            gateway.unread < configuration.maximumUnreadBytes
        else { return }
        while !gateway.moves.isEmpty {
            // At 300 bytes an owner, far below the largest message.
            let some = gateway.moves.prefix(1024)
            for (owner, _) in some { gateway.moves[owner] = nil }
            let reply = LinkReply.moves(Dictionary(uniqueKeysWithValues: some.map { ($0.key, $0.value) }))
            try send(reply.encode(), to: gateway)
        }
        guard !gateway.passed.isEmpty else { return }
        let uploads = gateway.passed.map { UploadReference(partition: $0.key, offset: $0.value) }
        gateway.passed = [:]
        try send(LinkReply.passed(uploads).encode(), to: gateway)
    }

    /// Sends, or drops who does not take it.
    func send(_ bytes: [UInt8], to gateway: ServedGateway) throws {
        guard gateways[gateway.id] === gateway else { return }
        switch try sockets.router.send([gateway.id, bytes]) {
        case .queued: gateway.noteSent(bytes.count)
        case .full: drop(gateway, "it does not read")
        case .noPeer: drop(gateway, "its connection has gone", isFault: false)
        }
    }

    // MARK: What gateways say

    private func takeMessages() throws {
        for _ in 0..<Self.messagesInARow {
            guard let parts = try sockets.router.receive() else { return }
            guard parts.count == 2 else {
                if let id = parts.first { try dismiss(id, "a message has another number of parts than one") }
                continue
            }
            let request: LinkRequest
            do throws(WireError) {
                request = try LinkRequest(decoding: parts[1], limits: limits)
            } catch {
                let isNewer = error.isNewerFormat
                try dismiss(parts[0], isNewer ? "it speaks a newer version: update the fan-outs first" : "\(error)")
                continue
            }
            guard let gateway = gateways[parts[0]] else {
                try greet(parts[0], request)
                continue
            }
            gateway.silentBeats = 0
            try handle(request, of: gateway)
        }
        // There may be more: the next wait ends at once.
    }

    private func greet(_ id: [UInt8], _ request: LinkRequest) throws {
        guard case .hello(let epoch, let wantsPassed) = request else {
            return try dismiss(id, "the connection is not known (any more)", isFault: false)
        }
        guard gateways.count < Self.maximumGateways else {
            return try dismiss(id, "there are \(Self.maximumGateways) gateways already")
        }
        let reply = LinkReply.description(description).encode()
        guard epoch.utf8.elementsEqual(description.epoch.utf8) else {
            // The gateway says so in its log, too; it is answered nothing.
            logger.warning(
                "A gateway of another history was turned away", [.epoch: .string(epoch)])
            _ = try sockets.router.send([id, reply])
            return
        }
        lastNumber += 1
        let gateway = ServedGateway(id: id, number: lastNumber, wantsPassed: wantsPassed)
        gateways[id] = gateway
        ids[lastNumber] = id
        metrics.gateways.set(gateways.count)
        logger.info("A gateway has connected", [.count: .integer(gateways.count)])
        if wantsPassed { gateway.passed = passed }
        try send(reply, to: gateway)
        try tell(gateway)
    }

    // MARK: Coming and going

    private func beat() throws {
        refusals.beat(logger)
        for gateway in gateways.values {
            gateway.silentBeats += 1
            gateway.stuckBeats = gateway.unread > 0 ? gateway.stuckBeats + 1 : 0
            if gateway.silentBeats > LinkConfiguration.silentBeats {
                drop(gateway, "it has fallen silent")
            } else if gateway.stuckBeats > LinkConfiguration.silentBeats {
                drop(gateway, "it does not read")
            } else if !gateway.owed.isEmpty {
                let owed = Array(gateway.owed)
                tellHeads(of: owed, to: gateway)
            }
        }
    }

    /// Forgets a gateway; should it be there, it learns so and connects anew.
    func drop(_ gateway: ServedGateway, _ reason: String, isFault: Bool = true) {
        guard gateways[gateway.id] === gateway else { return }
        gateways[gateway.id] = nil
        ids[gateway.number] = nil
        gateway.leave()
        metrics.gateways.set(gateways.count)
        if isFault { metrics.dropped.add() }
        logger.log(
            isFault ? .warning : .info, "A gateway has gone",
            [.reason: .string(reason), .count: .integer(gateways.count)])
    }

    /// Says goodbye to whoever is at the other end.
    func dismiss(_ id: [UInt8], _ reason: String, isFault: Bool = true) throws {
        if let gateway = gateways[id] { drop(gateway, reason, isFault: isFault) }
        // Whoever does not take it learns by the silence.
        _ = try sockets.router.send([id, LinkReply.goodbye(reason).encode()])
    }

    private func takeEvents() throws {
        while let event = try sockets.monitor.next() {
            if case .refused(let refusal) = event { note(refusal, count: 1) }
        }
    }

    private func note(_ refusal: ZeroMQMonitor.Refusal, count: Int) {
        guard count > 0 else { return }
        metrics.refused.add(count)
        refusals.note(refusal, logger)
    }
}

/// Connections that were refused, as lines of a log: the first of a kind at once, others at most once in a beat.
private struct RefusalLog {
    private var counts: [ZeroMQMonitor.Refusal: Int] = [:]

    mutating func note(_ refusal: ZeroMQMonitor.Refusal, _ logger: Logger) {
        if let count = counts[refusal] {
            counts[refusal] = count + 1
        } else {
            counts[refusal] = 0
            write(refusal, 1, logger)
        }
    }

    mutating func beat(_ logger: Logger) {
        for (refusal, count) in counts {
            if count > 0 {
                write(refusal, count, logger)
                counts[refusal] = 0
            } else {
                counts[refusal] = nil
            }
        }
    }

    private func write(_ refusal: ZeroMQMonitor.Refusal, _ count: Int, _ logger: Logger) {
        logger.warning(
            "A connection was refused: look whether link.key-file is the same on every gateway and fan-out",
            [.reason: .text(refusal), .count: .integer(count)])
    }
}
