import Configuration
import FanOutLink
import LinkWire
import Metrics
import Observability
import SyncModel
import SyncWire
import ZeroMQ

/// The work of a ``RemoteFanOut``'s thread: keeps a connection with each fan-out, sends what callers ask and hands out what comes.
final class ClientLoop {
    /// What happens outside of questions.
    struct Events: Sendable {
        var passed: (@Sendable (UploadReference) -> Void)?
        var unserved: (@Sendable (Set<Int>) -> Void)?
    }

    /// A fan-out of the configuration.
    private struct Place {
        let address: NetworkAddress
        var connection: FanOutConnection?
        /// How often in a row no connection came up.
        var failures = 0
        /// For how many beats to wait before the next attempt.
        var pause = 0
        /// The last trouble that the log was told of, so that it is told once.
        var trouble: String?
    }

    /// The longest pause between attempts, in beats: a few seconds, since a fan-out that is back should serve.
    private static let longestPause = 4
    /// Messages taken of one wait, so that questions get their turn.
    private static let messagesInARow = 256

    private let context: ZeroMQContext
    private let board: LinkState
    private let configuration: RemoteFanOutConfiguration
    private let link: LinkConfiguration
    private let epoch: String
    private let events: Events
    private let logger: Logger
    private let metrics: LinkMetrics
    private let now: @Sendable () -> Duration
    private let limits: WireLimits
    private var places: [Place]
    private var lastNumber = 0

    init(
        context: ZeroMQContext, board: LinkState, configuration: RemoteFanOutConfiguration, link: LinkConfiguration,
        epoch: String, events: Events, logger: Logger, metrics: LinkMetrics, now: @escaping @Sendable () -> Duration
    ) {
        self.context = context
        self.board = board
        self.configuration = configuration
        self.link = link
        self.epoch = epoch
        self.events = events
        self.logger = logger
        self.metrics = metrics
        self.now = now
        limits = WireLimits(
            byteCount: link.maximumMessageBytes, fieldCount: WireLimits.standard.fieldCount,
            depth: WireLimits.standard.depth)
        places = configuration.fanOuts.map { Place(address: $0) }
    }

    /// Serves until the board says stop.
    func run() throws(ZeroMQError) {
        defer {
            for place in places { place.connection?.close() }
            metrics.connections.set(0)
        }
        for index in places.indices { connect(index) }
        while true {
            let open = places.indices.filter { places[$0].connection != nil }
            let connections = open.compactMap { places[$0].connection }
            let ready = try board.bell.wait(for: connections.flatMap { [$0.socket, $0.monitor.socket] })
            let (outgoing, beats, isStopping) = board.take()
            if isStopping { return }
            for message in outgoing { try send(message) }
            for (position, index) in open.enumerated() {
                let connection = connections[position]
                // What the connection brought before it went counts.
                if ready[2 * position] { try takeMessages(of: index, connection) }
                if ready[2 * position + 1] { try takeEvents(of: index, connection) }
            }
            for _ in 0..<beats { try beat() }
        }
    }

    // MARK: Connections

    private func connect(_ index: Int) {
        lastNumber += 1
        do throws(ZeroMQError) {
            places[index].connection = try FanOutConnection(
                to: places[index].address, number: lastNumber, in: context, link,
                maximumRequests: configuration.maximumRequests)
        } catch {
            // No descriptors left, or an address that libzmq does not take: the others go on.
            places[index].pause = Self.longestPause
            warn(index, "\(error)")
        }
    }

    /// Gives a connection up; the next is made at once where this one had been up, else at a later beat.
    private func disconnect(_ index: Int, _ connection: FanOutConnection, _ reason: String) {
        guard places[index].connection === connection else { return }
        places[index].connection = nil
        connection.close()
        if case .up = connection.phase { places[index].failures = 0 } else { places[index].failures += 1 }
        places[index].pause = min(Self.longestPause, (1 << min(places[index].failures, 8)) >> 1)
        report(board.lose(index, reason))
        warn(index, reason)
    }

    private func warn(_ index: Int, _ trouble: String) {
        guard places[index].trouble != trouble else { return }
        places[index].trouble = trouble
        logger.warning(
            "A fan-out cannot be asked", [.address: .text(places[index].address), .reason: .string(trouble)])
    }

    private func report(_ unserved: Set<Int>?) {
        metrics.connections.set(
            places.count { if case .up = $0.connection?.phase { true } else { false } })
        if let unserved { events.unserved?(unserved) }
    }

    private func beat() throws(ZeroMQError) {
        board.expire(at: now())
        for index in places.indices {
            guard let connection = places[index].connection else {
                if places[index].pause > 0 { places[index].pause -= 1 }
                if places[index].pause == 0 { connect(index) }
                continue
            }
            connection.silentBeats += 1
            if connection.silentBeats > LinkConfiguration.silentBeats {
                disconnect(index, connection, "nothing is heard from it")
            } else if connection.phase == .up, try !connection.ping() {
                disconnect(index, connection, "it does not read")
            }
        }
    }

    private func takeEvents(of index: Int, _ connection: FanOutConnection) throws(ZeroMQError) {
        while places[index].connection === connection, let event = try connection.monitor.next() {
            switch event {
            case .connected:
                connection.silentBeats = 0
                if try !connection.greet(epoch: epoch, wantsPassed: events.passed != nil) {
                    disconnect(index, connection, "it takes no messages")
                }
            case .disconnected, .failed:
                // What it sent before its end may still be in the queue.
                try takeMessages(of: index, connection)
                disconnect(
                    index, connection,
                    connection.phase == .connecting ? "nobody answers there" : "the connection was closed")
            case .refused(let refusal):
                disconnect(
                    index, connection, "\(refusal): look whether link.key-file is the same on every gateway and fan-out"
                )
            }
        }
    }

    // MARK: Messages

    private func send(_ message: LinkState.Outgoing) throws(ZeroMQError) {
        guard let connection = places[message.fanOut].connection, connection.number == message.connection else {
            return
        }
        if try !connection.send(message.bytes) { disconnect(message.fanOut, connection, "it does not read") }
    }

    private func takeMessages(of index: Int, _ connection: FanOutConnection) throws(ZeroMQError) {
        for _ in 0..<Self.messagesInARow {
            guard places[index].connection === connection else { return }
            guard let parts = try connection.socket.receive() else { return }
            guard parts.count == 1 else { return disconnect(index, connection, "a message has several parts") }
            let reply: LinkReply
            do throws(WireError) {
                reply = try LinkReply(decoding: parts[0], limits: limits)
            } catch {
                return disconnect(
                    index, connection,
                    error.isNewerFormat ? "it speaks a newer version: update this gateway" : "it sent \(error)")
            }
            if connection.noteReceived(parts[0].count), try !connection.ping() {
                return disconnect(index, connection, "it does not read")
            }
            handle(reply, of: index, connection)
        }
    }

    private func handle(_ reply: LinkReply, of index: Int, _ connection: FanOutConnection) {
        switch reply {
        case .description(let description): note(description, of: index, connection)
        case .answer(let number, let answer): board.answer(number, answer)
        case .moves(let moves):
            for (subscriber, owner, head) in board.moved(moves) { subscriber.call(owner, head) }
        case .passed(let uploads):
            for upload in uploads where upload.partition < board.partitioning.count { events.passed?(upload) }
        case .goodbye(let reason): disconnect(index, connection, "it said goodbye: \(reason)")
        case .pong, .unknown: break
        }
    }

    private func note(_ description: LinkDescription, of index: Int, _ connection: FanOutConnection) {
        guard description.epoch.utf8.elementsEqual(epoch.utf8) else {
            return refuse(
                index, connection,
                "it serves another history, \(description.epoch), and this gateway serves \(epoch): give both the same "
                    + "topics")
        }
        guard description.partitions == board.partitioning.count else {
            return refuse(
                index, connection,
                "it knows \(description.partitions) partitions, and this gateway \(board.partitioning.count)")
        }
        let isNew = connection.phase != .up
        connection.phase = .up
        let ready = description.ready.filter { $0 < board.partitioning.count }
        report(board.describe(index, connection.number, ready: ready))
        guard isNew else { return }
        places[index].trouble = nil
        logger.info(
            "A fan-out is connected", [.address: .text(places[index].address), .count: .integer(ready.count)])
    }

    /// Turns away a fan-out that must not be asked; later it may be another one.
    private func refuse(_ index: Int, _ connection: FanOutConnection, _ reason: String) {
        disconnect(index, connection, reason)
        places[index].pause = Self.longestPause
    }
}
