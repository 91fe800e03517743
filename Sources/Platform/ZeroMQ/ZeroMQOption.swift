import CZeroMQ

/// The options of sockets that are numbers; times in milliseconds.
package enum ZeroMQOption: Sendable, Hashable {
    /// How many messages may wait to be sent to a peer.
    case sendHighWaterMark
    /// How many messages of a peer may wait to be received.
    case receiveHighWaterMark
    /// 1: a router says when there is no peer with an id, or its queue is full; else it drops the message.
    case routerMandatory
    /// 1: messages wait for connections that stand alone.
    case immediate
    /// The pause before a connection is tried again; -1: it is not.
    case reconnectInterval
    /// How long the greeting of a connection may take.
    case handshakeInterval
    /// How often libzmq looks whether the peer is there.
    case heartbeatInterval
    /// After how long without an answer libzmq closes the connection.
    case heartbeatTimeout
    /// 1: addresses may be IPv6.
    case ipv6
    /// How many connections may wait to be accepted.
    case backlog

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
        case .backlog: ZMQ_BACKLOG
        }
    }
}
