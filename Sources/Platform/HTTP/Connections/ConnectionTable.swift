import Synchronization

/// The open connections of a server, by descriptor, and the number of connections of each client.
final class ConnectionTable: Sendable {
    fileprivate struct State {
        /// Indexed by descriptor: the system assigns the lowest free number, so the array is as long as the open files.
        var connections: [Connection?] = []
        var clients: [HTTPPeer.Client: Int] = [:]
        var count = 0
    }

    /// The limit that was reached.
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

    var count: Int { state.withLock { $0.count } }

    var all: [Connection] { state.withLock { $0.connections.compactMap { $0 } } }

    /// Adds a connection, unless a limit is reached.
    func insert(_ connection: Connection) -> Refusal? {
        let descriptor = Int(connection.descriptor)
        return state.withLock { state in
            if descriptor >= state.connections.count {
                let missing = descriptor + 1 - state.connections.count
                state.connections.append(contentsOf: repeatElement(nil, count: missing))
            }
            // libmicrohttpd closes a socket without notice when it runs out of memory.
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

    func remove(_ connection: Connection) { state.withLock { $0.remove(connection) } }

    /// Removes the connections that the daemon's threads had not started when they ended.
    func removeAll() { state.withLock { $0 = State() } }

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
