import Foundation
import Synchronization

/// A proxy between a client and a server on a Unix socket that closes or stalls a connection at a given byte.
package final class CuttingProxy: Sendable {
    package enum Direction: Sendable {
        case toServer
        case toClient
    }

    private enum Action {
        case cut
        case hold
    }

    private struct Plan {
        let direction: Direction
        let action: Action
        var bytesLeft: Int
    }

    private struct State {
        var plan: Plan?
        /// The callers of `waitUntilHeld()`.
        var waiting: [CheckedContinuation<Void, Never>] = []
        var isHeld = false
        var wasHeld = false
        var sockets: Set<Int32> = []
        var isEnded = false
    }

    /// The folder with the socket; `host` for libpq, with the port 5432.
    package let folder: String
    private let target: String
    private let listener: Int32
    private let state = Mutex(State())
    /// Closed while a connection is held.
    private let gate = NSCondition()

    package init(to server: PostgresServer) throws {
        folder = try PostgresInstallation.makeFolder()
        target = "\(server.folder)/.s.PGSQL.\(server.port)"
        listener = try UnixSocket.listen(at: "\(folder)/.s.PGSQL.5432")
        Thread.detachNewThread { [self] in
            while let client = UnixSocket.accept(listener) {
                passGate()
                join(client)
            }
        }
    }

    /// Closes the connection that carries the byte after the next `count` bytes in a direction, counted over all connections.
    package func cut(_ direction: Direction, after count: Int) {
        state.withLock { $0.plan = Plan(direction: direction, action: .cut, bytesLeft: count) }
    }

    /// Stalls that connection and all new ones instead, until `letGo()`.
    package func hold(_ direction: Direction, after count: Int) {
        state.withLock { $0.plan = Plan(direction: direction, action: .hold, bytesLeft: count) }
    }

    /// Cancels the cut or hold; whether it was not reached yet.
    package func disarm() -> Bool {
        state.withLock { state in
            defer { state.plan = nil }
            return state.plan != nil
        }
    }

    /// Returns once a connection was held.
    package func waitUntilHeld() async {
        await withCheckedContinuation { continuation in
            let wasHeld = state.withLock { state in
                if !state.wasHeld { state.waiting.append(continuation) }
                return state.wasHeld
            }
            if wasHeld { continuation.resume() }
        }
    }

    /// Resumes all connections.
    package func letGo() {
        gate.lock()
        state.withLock { $0.isHeld = false }
        gate.broadcast()
        gate.unlock()
    }

    private func passGate() {
        gate.lock()
        while state.withLock({ $0.isHeld }) { gate.wait() }
        gate.unlock()
    }

    /// Ends all connections and removes the folder.
    package func end() throws {
        let sockets = state.withLock { state in
            state.isEnded = true
            return state.sockets
        }
        UnixSocket.end(listener)
        for socket in sockets { UnixSocket.end(socket) }
        try FileManager.default.removeItem(atPath: folder)
    }

    private func join(_ client: Int32) {
        guard let server = UnixSocket.connect(to: target) else { return UnixSocket.close(client) }
        let isEnded = state.withLock { state in
            state.sockets.formUnion([client, server])
            return state.isEnded
        }
        if isEnded { for socket in [client, server] { UnixSocket.end(socket) } }
        // The last direction to end closes both sockets.
        let running = Mutex(2)
        for (direction, from, to) in [(Direction.toServer, client, server), (.toClient, server, client)] {
            Thread.detachNewThread { [self] in
                pump(direction, from: from, to: to)
                for socket in [client, server] { UnixSocket.end(socket) }
                let isLast = running.withLock { running in
                    running -= 1
                    return running == 0
                }
                guard isLast else { return }
                state.withLock { $0.sockets.subtract([client, server]) }
                for socket in [client, server] { UnixSocket.close(socket) }
            }
        }
    }

    private func pump(_ direction: Direction, from: Int32, to: Int32) {
        while let bytes = UnixSocket.read(from) {
            let (count, action) = admit(bytes.count, direction)
            guard UnixSocket.write(bytes[..<count], to: to) else { return }
            switch action {
            case .cut?: return
            case .hold?:
                let waiting = state.withLock { state in
                    defer { state.waiting = [] }
                    state.isHeld = true
                    state.wasHeld = true
                    return state.waiting
                }
                for continuation in waiting { continuation.resume() }
                passGate()
                guard UnixSocket.write(bytes[count...], to: to) else { return }
            case nil: break
            }
        }
    }

    /// How many of the bytes may pass, and the action after them.
    private func admit(_ count: Int, _ direction: Direction) -> (Int, Action?) {
        state.withLock { state in
            guard let plan = state.plan, plan.direction == direction else { return (count, nil) }
            if count <= plan.bytesLeft {
                state.plan?.bytesLeft -= count
                return (count, nil)
            }
            state.plan = nil
            return (plan.bytesLeft, plan.action)
        }
    }
}
