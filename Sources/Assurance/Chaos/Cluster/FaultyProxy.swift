import Glibc
import LoadTools
import Synchronization
import ThreadExecutor

/// A TCP proxy on 127.0.0.1 that can refuse, suspend or delay the connections through it.
///
/// Each direction of a connection has a thread, which blocks in its system calls.
final class FaultyProxy: Sendable {
    enum Mode: Sendable, Hashable {
        /// Bytes pass at once.
        case pass
        /// Connections are reset, new ones too.
        case refuse
        /// New connections are accepted; no byte passes.
        case hang
        /// Each piece of up to 64 KiB passes so many milliseconds later.
        case delay(milliseconds: Int)
    }

    /// A client's socket and the server's.
    private struct Pair {
        let client: Int32
        let server: Int32
        /// Threads that still use the sockets.
        var users = 2
    }

    private struct State {
        var mode = Mode.pass
        var pairs: [Int: Pair] = [:]
        var next = 0
        var hasEnded = false
    }

    /// Where clients connect.
    let port: UInt16
    private let target: UInt16
    private let listener: Int32
    private let state = Mutex(State())
    private let gate = Gate()

    private static let stackSize = 256 << 10

    /// Listens on a port and connects each client to another one.
    init(on port: UInt16, to target: UInt16) throws(LoadFailure) {
        self.port = port
        self.target = target
        listener = try Sockets.listen(on: port)
        guard startDetachedThread(stackSize: Self.stackSize, { [self] in accept() }) == 0 else {
            throw LoadFailure("the thread of a proxy could not be started")
        }
    }

    func set(_ mode: Mode) {
        gate.change {
            state.withLock { state in
                state.mode = mode
                if mode == .refuse { for pair in state.pairs.values { Sockets.reset(pair.client, pair.server) } }
            }
        }
    }

    /// Resets all connections and stops to listen.
    func end() {
        gate.change {
            state.withLock { state in
                state.hasEnded = true
                for pair in state.pairs.values { Sockets.reset(pair.client, pair.server) }
            }
        }
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private func accept() {
        defer { close(listener) }
        while true {
            let client = Glibc.accept(listener, nil, nil)
            if client < 0 {
                if state.withLock({ $0.hasEnded }) { return }
                // No free descriptor, or a connection that was reset meanwhile.
                if errno != EINTR, errno != ECONNABORTED { usleep(10_000) }
                continue
            }
            let isRefused = state.withLock { $0.mode == .refuse || $0.hasEnded }
            guard !isRefused, let server = Sockets.connect(to: target) else {
                Sockets.reset(client)
                close(client)
                continue
            }
            Sockets.sendAtOnce(client)
            Sockets.sendAtOnce(server)
            join(client, server)
        }
    }

    private func join(_ client: Int32, _ server: Int32) {
        let pair = state.withLock { state in
            state.next += 1
            state.pairs[state.next] = Pair(client: client, server: server)
            // The mode may have changed since the connection was accepted.
            if state.mode == .refuse || state.hasEnded { Sockets.reset(client, server) }
            return state.next
        }
        for (from, to) in [(client, server), (server, client)] {
            let code = startDetachedThread(stackSize: Self.stackSize) { [self] in
                pump(from, to)
                Sockets.shutDown(client, server)
                leave(pair)
            }
            if code != 0 {
                Sockets.reset(client, server)
                leave(pair)
            }
        }
    }

    /// The last user of a pair closes it.
    private func leave(_ pair: Int) {
        state.withLock { state in
            guard var known = state.pairs[pair] else { return }
            known.users -= 1
            state.pairs[pair] = known.users == 0 ? nil : known
            if known.users == 0 {
                close(known.client)
                close(known.server)
            }
        }
    }

    private func pump(_ from: Int32, _ to: Int32) {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = recv(from, &buffer, buffer.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            let mode = gate.wait { [self] in
                state.withLock { $0.mode != .hang || $0.hasEnded ? $0.mode : nil }
            }
            if case .delay(let milliseconds) = mode {
                SystemCall.wait(until: SystemCall.nanoseconds() + Int64(milliseconds) * 1_000_000)
            }
            guard Sockets.send(buffer[..<count], to: to) else { return }
        }
    }
}

/// Threads that wait until a condition holds.
final class Gate: @unchecked Sendable {
    // Unchecked: both are made for use by several threads, and are at fixed addresses.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// Changes what threads wait for, and wakes them.
    func change(_ body: () -> Void) {
        pthread_mutex_lock(mutex)
        body()
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }

    /// Waits until the body returns a value.
    func wait<Value>(_ body: () -> Value?) -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let value = body() { return value }
            pthread_cond_wait(condition, mutex)
        }
    }
}
