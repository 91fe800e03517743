import Configuration
import LinkWire
import SyncWire
import ZeroMQ

/// One connection of a ``RemoteFanOut`` with a fan-out, on its thread: it comes up once and goes once.
final class FanOutConnection {
    /// How far it has come.
    enum Phase {
        /// The network and the keys come first.
        case connecting
        /// It said hello and waits for the description.
        case greeting
        /// It knows what the fan-out serves.
        case up
    }

    /// What the board knows it by; never used again.
    let number: Int
    let socket: ZeroMQSocket
    let monitor: ZeroMQMonitor
    var phase = Phase.connecting
    /// For how many beats nothing came.
    var silentBeats = 0
    /// Bytes received, and those that the fan-out was told of.
    private(set) var received: Int64 = 0
    private var told: Int64 = 0

    /// How much may be received before the fan-out is told between two beats.
    private static let untold = 256 << 10

    init(
        to address: NetworkAddress, number: Int, in context: ZeroMQContext, _ link: LinkConfiguration,
        maximumRequests: Int
    ) throws(ZeroMQError) {
        self.number = number
        socket = try context.socket(.dealer)
        do {
            // As many messages as questions, their ends, and subscriptions in pieces.
            socket.set(.sendHighWaterMark, Int32(clamping: 2 * maximumRequests + 1024))
            socket.set(.receiveHighWaterMark, 1024)
            socket.set(.immediate, 1)
            socket.set(.handshakeInterval, 5000)
            // A connection that goes is replaced by another socket, so that none is taken for another.
            socket.set(.reconnectInterval, -1)
            socket.set(.ipv6, address.isIPv6 ? 1 : 0)
            socket.setMaximumMessageSize(link.maximumMessageBytes)
            if let key = link.key { try socket.useCurve(try key.client(), server: try key.server().publicKey) }
            monitor = try ZeroMQMonitor(socket, in: context, name: "fan-out-\(number)")
        } catch {
            socket.close()
            throw error
        }
        do {
            try socket.connect(address.endpoint)
        } catch {
            close()
            throw error
        }
    }

    /// Says hello.
    func greet(epoch: String, wantsPassed: Bool) throws(ZeroMQError) -> Bool {
        phase = .greeting
        return try send(LinkRequest.hello(epoch: epoch, wantsPassed: wantsPassed).encode())
    }

    /// Sends; false when the fan-out takes nothing any more.
    func send(_ bytes: [UInt8]) throws(ZeroMQError) -> Bool {
        if case .queued = try socket.send([bytes]) { true } else { false }
    }

    /// Notes that bytes came; whether the fan-out should be told.
    func noteReceived(_ bytes: Int) -> Bool {
        silentBeats = 0
        received += Int64(bytes)
        return received - told >= Self.untold
    }

    /// Says that it is there and what it has received.
    func ping() throws(ZeroMQError) -> Bool {
        told = received
        return try send(LinkRequest.ping(received: received).encode())
    }

    func close() {
        monitor.close()
        socket.close()
    }
}
