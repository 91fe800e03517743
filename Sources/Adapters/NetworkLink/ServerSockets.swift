import Configuration
import ZeroMQ

/// The sockets of a ``FanOutServer``, on its thread.
final class ServerSockets {
    let context: ZeroMQContext
    let router: ZeroMQSocket
    let monitor: ZeroMQMonitor
    /// Who may come in; `nil` where everybody on this machine may.
    let door: ZAPAuthenticator?
    let address: NetworkAddress

    init(_ configuration: FanOutServerConfiguration, _ link: LinkConfiguration) throws {
        let context = try ZeroMQContext()
        do {
            let router = try context.socket(.router)
            do {
                // As many messages as one gateway's questions may have answers, and its moves.
                router.set(.sendHighWaterMark, Int32(clamping: configuration.maximumRequestsOfGateway + 1024))
                router.set(.receiveHighWaterMark, 1024)
                router.set(.routerMandatory, 1)
                router.set(.handshakeInterval, 5000)
                router.set(.ipv6, configuration.address.isIPv6 ? 1 : 0)
                // A connection whose other end is gone or stopped is closed, with what waits to be sent.
                let silence = Int32(clamping: (link.heartbeat * LinkConfiguration.silentBeats).milliseconds)
                router.set(.heartbeatInterval, Int32(clamping: link.heartbeat.milliseconds))
                router.set(.heartbeatTimeout, silence)
                router.setMaximumMessageSize(link.maximumMessageBytes)
                door = try link.key.map { key in
                    try router.serveCurve(try key.server(), domain: "weir")
                    return try ZAPAuthenticator(context, admitting: try key.client().publicKey)
                }
                do {
                    monitor = try ZeroMQMonitor(router, in: context, name: "router")
                    do {
                        try router.bind(configuration.address.endpoint)
                        address = Self.bound(try router.lastEndpoint()) ?? configuration.address
                    } catch {
                        monitor.close()
                        throw error
                    }
                } catch {
                    door?.close()
                    throw error
                }
            } catch {
                router.close()
                throw error
            }
            self.router = router
        } catch {
            context.close()
            throw error
        }
        self.context = context
    }

    /// `tcp://127.0.0.1:7790` as an address.
    private static func bound(_ endpoint: String) -> NetworkAddress? {
        endpoint.hasPrefix("tcp://") ? NetworkAddress(String(endpoint.dropFirst(6))) : nil
    }

    /// All that may have something to read: the router, its monitor, the door.
    var all: [ZeroMQSocket] { [router, monitor.socket] + (door.map { [$0.socket] } ?? []) }

    func close() {
        monitor.close()
        router.close()
        door?.close()
        context.close()
    }
}

extension Duration {
    /// Whole milliseconds, at least 1.
    var milliseconds: Int64 {
        max(1, components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000)
    }
}
