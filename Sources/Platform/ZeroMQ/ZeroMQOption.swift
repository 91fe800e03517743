import CZeroMQ

/// The integer options of sockets; times in milliseconds.
package enum ZeroMQOption: Sendable, Hashable {
    /// The maximum number of messages in the send queue of a peer.
    case sendHighWaterMark
    /// The maximum number of messages in the receive queue of a peer.
    case receiveHighWaterMark
    /// 1: a router's `send` reports an unknown peer or a full queue, instead of dropping the message.
    case routerMandatory
    /// 1: messages are queued only for established connections.
    case immediate
    /// The pause before reconnecting; -1: never reconnect.
    case reconnectInterval
    /// The time limit of a handshake.
    case handshakeInterval
    /// The interval of libzmq's own heartbeats.
    case heartbeatInterval
    /// The time without a response after which libzmq closes the connection.
    case heartbeatTimeout
    /// 1: IPv6 addresses are allowed.
    case ipv6

    var number: Int32 {
        switch self {
        case .sendHighWaterMark: ZMQ_SNDHWM
        case .receiveHighWaterMark: ZMQ_RCVHWM
        case .routerMandatory: ZMQ_ROUTER_MANDATORY
        case .immediate: ZMQ_IMMEDIATE
        case .reconnectInterval: ZMQ_RECONNECT_IVL
        case .handshakeInterval: ZMQ_HANDSHAKE_IVL
        case .heartbeatInterval: ZMQ_HEARTBEAT_IVL
        case .heartbeatTimeout: ZMQ_HEARTBEAT_TIMEOUT
        case .ipv6: ZMQ_IPV6
        }
    }
}
