import Synchronization

/// The open connections of a server, by their descriptors, and how many each client has.
final class ConnectionTable: Sendable {
    fileprivate struct State {
        /// Indexed by descriptor: the system gives the lowest free number, so this is as long as there are files open.
        var connections: [Connection?] = []
        var clients: [HTTPPeer.Client: Int] = [:]
        var count = 0
    }

    /// Why there is no room for another connection.
    enum Refusal {
        case total
        case client
    }

    private let limit: Int
    private let clientLimit: Int
    private let state = Mutex(State())

    init(limit: Int, clientLimit: Int?) {
        self.limit = limit
        self.clientLimit = clientLimit ?? Int.max
    }

    /// How many connections are open.
    var count: Int { state.withLock { $0.count } }

    /// All connections.
    var all: [Connection] { state.withLock { $0.connections.compactMap { $0 } } }

    /// Notes a new connection if the limits allow it.
    func insert(_ connection: Connection) -> Refusal? {
        let descriptor = Int(connection.descriptor)
        return state.withLock { state in
            if descriptor >= state.connections.count {
                let missing = descriptor + 1 - state.connections.count
                state.connections.append(contentsOf: repeatElement(nil, count: missing))
            }
            // The library can close a socket without a word where it runs out of memory; the number tells.
            if let stale = state.connections[descriptor] { state.remove(stale) }
            guard state.count < limit else { return .total }
            let ofClient = state.clients[connection.peer.client, default: 0]
            guard ofClient < clientLimit else { return .client }
            state.clients[connection.peer.client] = ofClient + 1
            state.connections[descriptor] = connection
            state.count += 1
            return nil
        }
    }

    /// Forgets a connection, which is there or not.
    func remove(_ connection: Connection) {
        state.withLock { $0.remove(connection) }
    }

    /// Forgets the connections that never came to the library's threads before these ended.
    func removeAll() {
        state.withLock { $0 = State() }
    }

    /// The connection that has this descriptor now.
    subscript(descriptor: Int32) -> Connection? {
        state.withLock { state in
            state.connections.indices.contains(Int(descriptor)) ? state.connections[Int(descriptor)] : nil
        }
    }
}

extension ConnectionTable.State {
    fileprivate mutating func remove(_ connection: Connection) {
        let descriptor = Int(connection.descriptor)
        guard connections.indices.contains(descriptor), connections[descriptor] === connection else { return }
        connections[descriptor] = nil
        count -= 1
        let left = clients[connection.peer.client, default: 1] - 1
        clients[connection.peer.client] = left == 0 ? nil : left
    }
}
