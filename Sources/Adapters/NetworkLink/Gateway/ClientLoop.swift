import Configuration
import FanOutLink
import Metrics
import Observability
import SyncModel
import SyncWire
import ZeroMQ

/// The thread of a ``RemoteFanOut``: it keeps a connection with each fan-out, sends requests and dispatches what is received.
final class ClientLoop {
    /// A fan-out of the configuration.
    private struct Endpoint {
        let address: NetworkAddress
        var connection: FanOutConnection?
        /// Failed attempts to connect since the last connection.
        var failures = 0
        /// Heartbeats before the next attempt.
        var pause = 0
        /// Whether the fan-out is expected to have the accepted key; it stays so until the fan-out refuses it.
        var hasAcceptedKey = false
        /// Whether the other key was tried since the last attempt that failed.
        var triesOtherKey = false
        /// The last warning, which is not logged again.
        var warning: String?
    }

    /// The longest pause between attempts in heartbeats: a few seconds, so that a restarted fan-out is soon used again.
    private static let longestPause = 4
    /// Messages received of one connection before outgoing messages are sent.
    private static let messagesInARow = 256

    private let context: ZeroMQContext
    private let connections: ConnectionState
    private let dependencies: RemoteFanOut.Dependencies
    private let limits: WireLimits
    private var endpoints: [Endpoint]
    private var lastNumber = 0

    init(_ context: ZeroMQContext, _ connections: ConnectionState, _ dependencies: RemoteFanOut.Dependencies) {
        self.context = context
        self.connections = connections
        self.dependencies = dependencies
        limits = dependencies.link.wireLimits
        endpoints = dependencies.configuration.fanOuts.map { Endpoint(address: $0) }
    }

    private var logger: Logger { dependencies.logger }

    /// Runs until the link stops.
    func run() throws(ZeroMQError) {
        defer {
            for endpoint in endpoints { endpoint.connection?.close() }
            dependencies.metrics.connections.set(0)
        }
        for index in endpoints.indices { connect(index) }
        while true {
            let open = endpoints.indices.filter { endpoints[$0].connection != nil }
            let current = open.compactMap { endpoints[$0].connection }
            let ready = try connections.wakeup.wait(for: current.flatMap { [$0.socket, $0.monitor.socket] })
            let (outgoing, heartbeats, isStopping) = connections.take()
            if isStopping { return }
            for message in outgoing { try send(message) }
            for (position, index) in open.enumerated() {
                let connection = current[position]
                // Messages before events: what was received before a disconnect counts.
                if ready[2 * position] { try receiveMessages(of: index, connection) }
                if ready[2 * position + 1] { try receiveEvents(of: index, connection) }
            }
            for _ in 0..<heartbeats { try heartbeat() }
        }
    }

    // MARK: Connections

    private func connect(_ index: Int) {
        lastNumber += 1
        do throws(ZeroMQError) {
            endpoints[index].connection = try FanOutConnection(
                to: endpoints[index].address, number: lastNumber, in: context, dependencies.link,
                serverKey: endpoints[index].hasAcceptedKey ? dependencies.link.acceptedKey : dependencies.link.key,
                maximumRequests: dependencies.configuration.maximumRequests)
        } catch {
            // No descriptors left, or an address that libzmq rejects: the other connections are not affected.
            endpoints[index].pause = Self.longestPause
            warn(index, "\(error)")
        }
    }

    /// Closes a connection; the next attempt follows at the next heartbeat if this one was up, else after a pause.
    private func disconnect(_ index: Int, _ connection: FanOutConnection, _ reason: String) {
        guard endpoints[index].connection === connection else { return }
        endpoints[index].connection = nil
        endpoints[index].triesOtherKey = false
        connection.close()
        if case .up = connection.phase { endpoints[index].failures = 0 } else { endpoints[index].failures += 1 }
        endpoints[index].pause = min(Self.longestPause, (1 << min(endpoints[index].failures, 8)) >> 1)
        report(connections.disconnected(index, reason))
        warn(index, reason)
    }

    /// Connects at once with the other of two keys, once for each attempt that one of them fails.
    private func retryWithOtherKey(_ index: Int, _ connection: FanOutConnection) -> Bool {
        guard dependencies.link.acceptedKey != nil, endpoints[index].connection === connection,
            !endpoints[index].triesOtherKey
        else { return false }
        endpoints[index].connection = nil
        connection.close()
        endpoints[index].triesOtherKey = true
        endpoints[index].hasAcceptedKey.toggle()
        connect(index)
        return true
    }

    private func warn(_ index: Int, _ reason: String) {
        guard endpoints[index].warning != reason else { return }
        endpoints[index].warning = reason
        logger.warning(
            "Fan-out unavailable", [.address: .text(endpoints[index].address), .reason: .string(reason)])
    }

    private func report(_ unserved: Set<Int>?) {
        dependencies.metrics.connections.set(
            endpoints.count { if case .up = $0.connection?.phase { true } else { false } })
        if let unserved { dependencies.unserved?(unserved) }
    }

    private func heartbeat() throws(ZeroMQError) {
        connections.expire(at: dependencies.clock.now())
        connections.compareProgress()
        for index in endpoints.indices {
            guard let connection = endpoints[index].connection else {
                if endpoints[index].pause > 0 { endpoints[index].pause -= 1 }
                if endpoints[index].pause == 0 { connect(index) }
                continue
            }
            connection.silentHeartbeats += 1
            if connection.silentHeartbeats > LinkConfiguration.silentBeats {
                disconnect(index, connection, "it sent nothing for \(LinkConfiguration.silentBeats) heartbeats")
            } else if connection.phase == .up, try !connection.ping() {
                disconnect(index, connection, "it does not read its messages")
            }
        }
    }

    private func receiveEvents(of index: Int, _ connection: FanOutConnection) throws(ZeroMQError) {
        while endpoints[index].connection === connection, let event = try connection.monitor.next() {
            switch event {
            case .connected:
                connection.silentHeartbeats = 0
                let wantsPassed = dependencies.passed != nil
                if try !connection.sendHello(epoch: dependencies.epoch, wantsPassed: wantsPassed) {
                    disconnect(index, connection, "it does not read its messages")
                }
            case .disconnected, .failed:
                // What it sent before the disconnect may still be in the queue.
                try receiveMessages(of: index, connection)
                disconnect(
                    index, connection,
                    connection.phase == .connecting ? "it cannot be reached" : "the connection was closed")
            case .refused(let refusal):
                if retryWithOtherKey(index, connection) { return }
                disconnect(
                    index, connection, "\(refusal): check that link.key-file is the same on every gateway and fan-out")
            }
        }
    }

    // MARK: Messages

    private func send(_ message: ConnectionState.OutgoingMessage) throws(ZeroMQError) {
        guard let connection = endpoints[message.fanOut].connection, connection.number == message.connection else {
            return
        }
        if try !connection.send(message.bytes) {
            disconnect(message.fanOut, connection, "it does not read its messages")
        }
    }

    private func receiveMessages(of index: Int, _ connection: FanOutConnection) throws(ZeroMQError) {
        for _ in 0..<Self.messagesInARow {
            guard endpoints[index].connection === connection else { return }
            guard let frames = try connection.socket.receive() else { return }
            guard frames.count == 1 else {
                return disconnect(index, connection, "it sent a message of several frames")
            }
            let message: FanOutMessage
            do throws(WireError) {
                message = try FanOutMessage(decoding: frames[0], limits: limits)
            } catch {
                return disconnect(
                    index, connection,
                    error.isNewerFormat
                        ? "it uses a newer version of the link: update this gateway" : "it sent \(error)")
            }
            if connection.recordReceived(frames[0].count), try !connection.ping() {
                return disconnect(index, connection, "it does not read its messages")
            }
            handle(message, of: index, connection)
        }
    }

    private func handle(_ message: FanOutMessage, of index: Int, _ connection: FanOutConnection) {
        switch message {
        case .description(let description): handle(description, of: index, connection)
        case .response(let number, let response): connections.complete(number, response)
        case .moves(let moves):
            for (subscriber, owner, head) in connections.subscribers(to: moves) { subscriber.call(owner, head) }
        case .passed(let reports):
            for report in reports where report.partition < connections.partitioning.count {
                if let upload = report.passed { connections.passed(upload, of: index) }
                dependencies.passed?(report)
            }
        case .goodbye(let reason): disconnect(index, connection, "it closed the connection: \(reason)")
        case .pong, .unknown: break
        }
    }

    private func handle(_ description: LinkDescription, of index: Int, _ connection: FanOutConnection) {
        let (epoch, partitions) = (dependencies.epoch, connections.partitioning.count)
        guard description.epoch.utf8.elementsEqual(epoch.utf8) else {
            return reject(
                index, connection,
                "its epoch is \(description.epoch), this gateway's is \(epoch): configure both with the same topics")
        }
        guard description.partitions == partitions else {
            return reject(
                index, connection, "it has \(description.partitions) partitions, this gateway \(partitions)")
        }
        let isNew = connection.phase != .up
        connection.phase = .up
        let ready = description.ready.filter { $0 < partitions }
        report(connections.connected(index, connection.number, ready: ready))
        guard isNew else { return }
        endpoints[index].warning = nil
        logger.info(
            "Fan-out connected", [.address: .text(endpoints[index].address), .count: .integer(ready.count)])
    }

    /// Disconnects from a fan-out that must not be used; after the longest pause the address is tried again.
    private func reject(_ index: Int, _ connection: FanOutConnection, _ reason: String) {
        disconnect(index, connection, reason)
        endpoints[index].pause = Self.longestPause
    }
}
