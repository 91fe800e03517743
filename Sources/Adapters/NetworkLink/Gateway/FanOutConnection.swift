import Configuration
import SyncWire
import ZeroMQ

/// A connection of a ``RemoteFanOut`` with a fan-out, on the link's thread.
///
/// It is never reused: another socket replaces it.
final class FanOutConnection {
    enum Phase {
        /// Before the network connection and the exchange of keys.
        case connecting
        /// Hello was sent, and the description has not arrived.
        case greeting
        /// The description has arrived: requests may be sent.
        case up
    }

    /// Identifies the connection; never used again.
    let number: Int
    let socket: ZeroMQSocket
    let monitor: ZeroMQMonitor
    var phase = Phase.connecting
    /// Heartbeats since the last message.
    var silentHeartbeats = 0
    private var received: Int64 = 0
    /// The value of `received` in the last ping.
    private var acknowledged: Int64 = 0

    /// Received bytes after which a ping is sent before the next heartbeat.
    private static let maximumUnacknowledged = 256 << 10

    /// - Parameter serverKey: the key of which the fan-out's key pair is derived; the gateway's is that of `link.key`.
    init(
        to address: NetworkAddress, number: Int, in context: ZeroMQContext, _ link: LinkConfiguration,
        serverKey: LinkKey?, maximumRequests: Int
    ) throws(ZeroMQError) {
        self.number = number
        socket = try context.socket(.dealer)
        do {
            // Room for all requests, their cancellations, and subscriptions.
            socket.set(.sendHighWaterMark, Int32(clamping: 2 * maximumRequests + 1024))
            socket.set(.receiveHighWaterMark, 1024)
            socket.set(.immediate, 1)
            socket.set(.handshakeInterval, 5000)
            // libzmq does not reconnect: each connection has a socket of its own, so that none is mistaken for another.
            socket.set(.reconnectInterval, -1)
            socket.set(.ipv6, address.isIPv6 ? 1 : 0)
            socket.setMaximumMessageSize(link.maximumMessageBytes)
            if let key = link.key, let serverKey {
                try socket.useCurve(try key.client(), server: try serverKey.server().publicKey)
            }
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

    func sendHello(epoch: String, wantsPassed: Bool) throws(ZeroMQError) -> Bool {
        phase = .greeting
        return try send(GatewayMessage.hello(epoch: epoch, wantsPassed: wantsPassed).encode())
    }

    /// Returns false when the socket's queue is full: the fan-out does not read.
    func send(_ bytes: [UInt8]) throws(ZeroMQError) -> Bool {
        if case .queued = try socket.send([bytes]) { true } else { false }
    }

    /// Returns whether so much was received that a ping is due.
    func recordReceived(_ bytes: Int) -> Bool {
        silentHeartbeats = 0
        received += Int64(bytes)
        return received - acknowledged >= Self.maximumUnacknowledged
    }

    /// Sends a heartbeat with the bytes received so far.
    func ping() throws(ZeroMQError) -> Bool {
        acknowledged = received
        return try send(GatewayMessage.ping(received: received).encode())
    }

    func close() {
        monitor.close()
        socket.close()
    }
}
