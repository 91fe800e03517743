import FanOutLink
import Metrics
import Observability
import SyncModel
import SyncWire
import ZeroMQ

/// The thread of a ``FanOutServer``: it receives the gateways' messages and sends responses and notifications.
final class ServerLoop {
    /// More gateways than any cluster has.
    private static let maximumGateways = 1024
    /// The owners that one gateway may subscribe to: several times its long polls and watchers.
    static let maximumSubscriptions = 1 << 18
    /// Messages received before responses are sent.
    private static let messagesInARow = 256

    private let sockets: ServerSockets
    let inbox: ServerInbox
    private let dependencies: FanOutServer.Dependencies
    let partitioning: Partitioning
    private let limits: WireLimits
    private var description: LinkDescription
    private var gateways: [[UInt8]: GatewayConnection] = [:]
    private var ids: [Int: [UInt8]] = [:]
    private var lastNumber = 0
    /// Requests in flight, including those of gateways that have disconnected.
    var inFlight = 0
    /// What each stream has applied, for gateways that connect later.
    private var passed: [Int: StreamReport] = [:]
    private var rejections = RejectionLog()

    init(
        _ sockets: ServerSockets, _ inbox: ServerInbox, _ description: LinkDescription,
        _ dependencies: FanOutServer.Dependencies
    ) {
        self.sockets = sockets
        self.inbox = inbox
        self.description = description
        self.dependencies = dependencies
        partitioning = Partitioning(count: description.partitions)
        limits = dependencies.link.wireLimits
    }

    var fanOut: any FanOutLink { dependencies.fanOut }
    var configuration: FanOutServerConfiguration { dependencies.configuration }
    var metrics: LinkMetrics { dependencies.metrics }
    private var logger: Logger { dependencies.logger }

    /// Runs until the server stops.
    func run() throws {
        defer { for gateway in gateways.values { gateway.close() } }
        let all = sockets.all
        var isStopping = false
        while !isStopping {
            let ready = try inbox.wakeup.wait(for: all)
            let contents = inbox.takeAll()
            isStopping = contents.isStopping
            try handle(contents)
            if ready[0] { try receiveMessages() }
            if ready[1] { try receiveEvents() }
            if ready.count > 2, let authenticator = sockets.authenticator {
                record(.notAdmitted, count: try authenticator.handleRequests())
            }
            // Last: messages received by now count as signs of life, however late the thread reads them.
            for _ in 0..<contents.heartbeats { try heartbeat() }
        }
    }

    // MARK: Responses and notifications

    private func handle(_ contents: ServerInbox.Contents) throws {
        if let description = contents.description, description != self.description {
            self.description = description
            let bytes = FanOutMessage.description(description).encode()
            for gateway in gateways.values { try send(bytes, to: gateway) }
        }
        for (number, moves) in contents.moves {
            guard let gateway = gateway(number) else { continue }
            for (owner, head) in moves where gateway.subscriptions[owner] != nil {
                gateway.missingHeads.remove(owner)
                gateway.moves[owner] = max(head, gateway.moves[owner] ?? .zero)
            }
        }
        for report in contents.passed.values {
            passed.merge(report.lasting)
            for gateway in gateways.values where gateway.wantsPassed { gateway.passed.merge(report) }
        }
        for (number, request, response) in contents.finished {
            inFlight -= 1
            guard let request else { continue }
            metrics.served.add()
            guard let gateway = gateway(number), gateway.tasks.removeValue(forKey: request) != nil else { continue }
            try respond(to: request, response, gateway)
        }
        metrics.underWay.set(inFlight)
        for gateway in gateways.values { try sendNotifications(to: gateway) }
    }

    private func gateway(_ number: Int) -> GatewayConnection? { ids[number].flatMap { gateways[$0] } }

    private func respond(to request: Int64, _ bytes: [UInt8], _ gateway: GatewayConnection) throws {
        let isTooLarge = bytes.count > dependencies.link.maximumMessageBytes
        // A gateway that has read everything may get a response of any size.
        let isOverBudget =
            gateway.unreadBytes > 0 && gateway.unreadBytes + bytes.count > configuration.maximumUnreadBytes
        guard isTooLarge || isOverBudget else { return try send(bytes, to: gateway) }
        try fail(
            request,
            isTooLarge
                ? "the response has \(bytes.count) bytes, more than link.max-message-bytes"
                : "the gateway has not read earlier responses", to: gateway)
    }

    /// Sends a failure as the response to a request.
    func fail(_ request: Int64, _ reason: String, to gateway: GatewayConnection) throws {
        try send(FanOutMessage.response(number: request, .failure(.notReady(reason))).encode(), to: gateway)
    }

    /// Sends the pending notifications, unless the gateway has too many unread bytes.
    private func sendNotifications(to gateway: GatewayConnection) throws {
        guard !gateway.moves.isEmpty || !gateway.passed.isEmpty,
            gateway.unreadBytes < configuration.maximumUnreadBytes
        else { return }
        while !gateway.moves.isEmpty {
            // At 300 bytes an owner, far below the largest message.
            let some = gateway.moves.prefix(1024)
            for (owner, _) in some { gateway.moves[owner] = nil }
            let message = FanOutMessage.moves(Dictionary(uniqueKeysWithValues: some.map { ($0.key, $0.value) }))
            try send(message.encode(), to: gateway)
        }
        while !gateway.passed.isEmpty {
            // At 80 kilobytes a stream, where each of 1024 partitions has parts in each other, and the longest ids have large ones.
            let some = gateway.passed.prefix(8)
            for (partition, _) in some { gateway.passed[partition] = nil }
            try send(FanOutMessage.passed(some.map(\.value)).encode(), to: gateway)
        }
    }

    /// Sends a message; disconnects the gateway if it does not read.
    func send(_ bytes: [UInt8], to gateway: GatewayConnection) throws {
        guard gateways[gateway.id] === gateway else { return }
        switch try sockets.router.send([gateway.id, bytes]) {
        case .queued: gateway.recordSent(bytes.count)
        case .full: disconnect(gateway, "it does not read its messages")
        case .noPeer: disconnect(gateway, "the connection was closed", isFault: false)
        }
    }

    // MARK: Messages

    private func receiveMessages() throws {
        // If there are more, the next wait ends at once.
        for _ in 0..<Self.messagesInARow {
            guard let frames = try sockets.router.receive() else { return }
            guard frames.count == 2 else {
                if let id = frames.first { try dismiss(id, "a message must have one frame") }
                continue
            }
            let message: GatewayMessage
            do throws(WireError) {
                message = try GatewayMessage(decoding: frames[1], limits: limits)
            } catch {
                try dismiss(
                    frames[0],
                    error.isNewerFormat
                        ? "it uses a newer version of the link: update the fan-outs first" : "\(error)")
                continue
            }
            guard let gateway = gateways[frames[0]] else {
                try connect(frames[0], message)
                continue
            }
            gateway.silentHeartbeats = 0
            try handle(message, of: gateway)
        }
    }

    private func connect(_ id: [UInt8], _ message: GatewayMessage) throws {
        guard case .hello(let epoch, let wantsPassed) = message else {
            return try dismiss(id, "the connection is unknown", isFault: false)
        }
        guard gateways.count < Self.maximumGateways else {
            return try dismiss(id, "\(Self.maximumGateways) gateways are connected already")
        }
        let response = FanOutMessage.description(description).encode()
        guard epoch.utf8.elementsEqual(description.epoch.utf8) else {
            // The description shows the gateway the other epoch, which it logs, too.
            logger.warning("Gateway with a different epoch rejected", [.epoch: .string(epoch)])
            _ = try sockets.router.send([id, response])
            return
        }
        lastNumber += 1
        let gateway = GatewayConnection(id: id, number: lastNumber, wantsPassed: wantsPassed)
        gateways[id] = gateway
        ids[lastNumber] = id
        metrics.gateways.set(gateways.count)
        logger.info("Gateway connected", [.count: .integer(gateways.count)])
        if wantsPassed { gateway.passed = passed }
        try send(response, to: gateway)
        try sendNotifications(to: gateway)
    }

    // MARK: Connections

    private func heartbeat() throws {
        rejections.heartbeat(logger)
        let limit = LinkConfiguration.silentBeats
        for gateway in gateways.values {
            gateway.silentHeartbeats += 1
            gateway.stuckHeartbeats = gateway.unreadBytes > 0 ? gateway.stuckHeartbeats + 1 : 0
            if gateway.silentHeartbeats > limit {
                disconnect(gateway, "it sent nothing for \(limit) heartbeats")
            } else if gateway.stuckHeartbeats > limit {
                disconnect(gateway, "it does not read its messages")
            } else if !gateway.missingHeads.isEmpty {
                sendHeads(of: Array(gateway.missingHeads), to: gateway)
            }
        }
    }

    /// Removes a gateway; if it is still there, its next message is answered with goodbye, and it connects again.
    private func disconnect(_ gateway: GatewayConnection, _ reason: String, isFault: Bool = true) {
        guard gateways[gateway.id] === gateway else { return }
        gateways[gateway.id] = nil
        ids[gateway.number] = nil
        gateway.close()
        metrics.gateways.set(gateways.count)
        if isFault { metrics.dropped.add() }
        logger.log(
            isFault ? .warning : .info, "Gateway disconnected",
            [.reason: .string(reason), .count: .integer(gateways.count)])
    }

    /// Removes a gateway, and sends goodbye with the reason.
    func dismiss(_ id: [UInt8], _ reason: String, isFault: Bool = true) throws {
        if let gateway = gateways[id] { disconnect(gateway, reason, isFault: isFault) }
        // A peer with a full queue gets no goodbye, and notices that the heartbeats stop.
        _ = try sockets.router.send([id, FanOutMessage.goodbye(reason).encode()])
    }

    private func receiveEvents() throws {
        while let event = try sockets.monitor.next() {
            if case .refused(let refusal) = event { record(refusal, count: 1) }
        }
    }

    private func record(_ refusal: ZeroMQMonitor.Refusal, count: Int) {
        guard count > 0 else { return }
        metrics.refused.add(count)
        rejections.record(refusal, logger)
    }
}

/// Logs rejected connections: the first of a kind at once, further ones at most once in a heartbeat.
private struct RejectionLog {
    private var counts: [ZeroMQMonitor.Refusal: Int] = [:]

    mutating func record(_ refusal: ZeroMQMonitor.Refusal, _ logger: Logger) {
        if let count = counts[refusal] {
            counts[refusal] = count + 1
        } else {
            counts[refusal] = 0
            write(refusal, 1, logger)
        }
    }

    mutating func heartbeat(_ logger: Logger) {
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
            "Connection rejected: check that link.key-file is the same on every gateway and fan-out",
            [.reason: .text(refusal), .count: .integer(count)])
    }
}
