import Configuration
import ZeroMQ

/// The sockets of a ``FanOutServer``, on its thread.
final class ServerSockets {
    private let context: ZeroMQContext
    let router: ZeroMQSocket
    let monitor: ZeroMQMonitor
    /// `nil` without a key: then only processes on this machine can connect, and all of them may.
    let authenticator: ZAPAuthenticator?
    let address: NetworkAddress

    init(_ configuration: FanOutServerConfiguration, _ link: LinkConfiguration) throws {
        context = try ZeroMQContext()
        // What was opened, to be closed in reverse order if a later step fails.
        var opened: [() -> Void] = [context.close]
        do {
            router = try context.socket(.router)
            opened.append(router.close)
            // Room for the responses to one gateway's requests, and notifications.
            router.set(.sendHighWaterMark, Int32(clamping: configuration.maximumRequestsOfGateway + 1024))
            router.set(.receiveHighWaterMark, 1024)
            router.set(.routerMandatory, 1)
            router.set(.handshakeInterval, 5000)
            router.set(.ipv6, configuration.address.isIPv6 ? 1 : 0)
            // libzmq closes a connection whose peer is gone or stopped, and drops its queue.
            let silence = Int32(clamping: (link.heartbeat * LinkConfiguration.silentBeats).milliseconds)
            router.set(.heartbeatInterval, Int32(clamping: link.heartbeat.milliseconds))
            router.set(.heartbeatTimeout, silence)
            router.setMaximumMessageSize(link.maximumMessageBytes)
            if let key = link.key {
                try router.serveCurve(try key.server(), domain: "weir")
                var admitted = [try key.client().publicKey]
                if let accepted = link.acceptedKey { admitted.append(try accepted.client().publicKey) }
                let authenticator = try ZAPAuthenticator(context, admitting: admitted)
                self.authenticator = authenticator
                opened.append(authenticator.close)
            } else {
                authenticator = nil
            }
            monitor = try ZeroMQMonitor(router, in: context, name: "router")
            opened.append(monitor.close)
            try router.bind(configuration.address.endpoint)
            address = Self.address(at: try router.lastEndpoint()) ?? configuration.address
        } catch {
            for close in opened.reversed() { close() }
            throw error
        }
    }

    /// `tcp://127.0.0.1:7790` as an address.
    private static func address(at endpoint: String) -> NetworkAddress? {
        endpoint.hasPrefix("tcp://") ? NetworkAddress(String(endpoint.dropFirst(6))) : nil
    }

    /// The sockets that may have something to read: the router, its monitor, the authenticator.
    var all: [ZeroMQSocket] { [router, monitor.socket] + (authenticator.map { [$0.socket] } ?? []) }

    func close() {
        monitor.close()
        router.close()
        authenticator?.close()
        context.close()
    }
}

extension Duration {
    /// Whole milliseconds, at least 1.
    fileprivate var milliseconds: Int64 {
        max(1, components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000)
    }
}
