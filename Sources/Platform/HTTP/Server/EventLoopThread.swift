import CEventFD
import CMicrohttpd
import Glibc
import Synchronization

/// The work of the server's event-loop thread; see `EventLoop`.
final class EventLoopThread: @unchecked Sendable {
    // Unchecked: created on the thread that starts the server, and used on its own thread only from `run` on.
    private let core: ServerCore
    private var listener: Listener?
    private var daemon: MicrohttpdDaemon?
    private var nextNumber: UInt32 = 1
    private var isListening = false
    /// When to accept again after a failure.
    private var retryAt = UInt64.max
    private var stopAt: UInt64?
    /// One for each call of `stop`.
    private var waiting: [CheckedContinuation<Void, Never>] = []

    /// The pause, in nanoseconds, after accepting failed for want of descriptors or memory.
    private static let retryTime: UInt64 = 100_000_000

    /// The most connections to accept before other events are handled.
    private static let acceptBatch = 64

    init(core: ServerCore, listener: consuming Listener, daemon: consuming MicrohttpdDaemon) {
        self.core = core
        self.listener = consume listener
        self.daemon = consume daemon
    }

    /// Runs until the server is stopped.
    func run() {
        setListening(true)
        while true {
            for source in core.eventLoop.wait(until: min(retryAt, stopAt ?? UInt64.max)) {
                switch source {
                case .wake: core.eventLoop.clearWake()
                case .listener: accept()
                case .connection(let descriptor, let number):
                    if let connection = core.table[descriptor], connection.number == number { connection.peerClosed() }
                }
            }
            let now = MonotonicTime.now()
            checkDeadlines(now: now)
            if now >= retryAt { setListening(true) }
            for command in core.eventLoop.takeCommands() { handle(command) }
            if let stopAt,
                now >= stopAt || core.counters.requestsUnderWay.load(ordering: .sequentiallyConsistent) == 0
            {
                break
            }
        }
        stop()
    }

    // MARK: - New connections

    private func setListening(_ isOn: Bool) {
        retryAt = UInt64.max
        guard let socket = listener?.descriptor.number, isOn != isListening else { return }
        if core.eventLoop.observeConnections(of: socket, isOn) {
            isListening = isOn
        } else if isOn {
            retryAt = MonotonicTime.now() + Self.retryTime
        }
    }

    private func accept() {
        guard let socket = listener?.descriptor.number else { return }
        for _ in 0..<Self.acceptBatch {
            var storage = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let accepted = withUnsafeMutableBytes(of: &storage) {
                accept4(
                    socket, $0.assumingMemoryBound(to: sockaddr.self).baseAddress!, &length,
                    Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue))
            }
            guard accepted >= 0 else {
                switch errno {
                case EAGAIN: return
                case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                    core.report(.acceptFailed(code: errno))
                    setListening(false)
                    retryAt = MonotonicTime.now() + Self.retryTime
                    return
                // The connection failed before it was accepted.
                default: continue
                }
            }
            register(accepted, storage, length: length)
        }
    }

    private func register(_ socket: Int32, _ storage: sockaddr_storage, length: socklen_t) {
        guard let peer = HTTPPeer(storage) else {
            close(socket)
            return
        }
        let deadline = MonotonicTime.now() + core.requestTime
        let connection = Connection(
            descriptor: socket, number: nextNumber, peer: peer, core: core, deadline: deadline)
        nextNumber = nextNumber == UInt32.max ? 1 : nextNumber + 1
        switch core.table.insert(connection) {
        case .total?:
            core.counters.connectionsOverLimit.add(1)
            close(socket)
        case .client?:
            core.counters.connectionsOverClientLimit.add(1)
            close(socket)
        case nil:
            core.counters.connectionsAccepted.add(1)
            core.eventLoop.schedule(connection, at: deadline)
            core.eventLoop.observeClose(of: connection)
            if daemon?.add(socket, storage, length: length) != true { core.table.remove(connection) }
        }
    }

    // MARK: - Deadlines and stopping

    private func checkDeadlines(now: UInt64) {
        while let entry = core.eventLoop.takeDue(at: now) {
            guard let connection = core.table[entry.descriptor], connection.number == entry.number else { continue }
            if let next = connection.checkDeadline(now: now) { core.eventLoop.requeue(entry, at: next) }
        }
    }

    private func handle(_ command: EventLoop.Command) {
        drain()
        switch command {
        case .drain(let done): done.resume()
        case .stop(let time, let done):
            stopAt = min(stopAt ?? UInt64.max, time)
            waiting.append(done)
        }
    }

    private func drain() {
        guard listener != nil else { return }
        setListening(false)
        listener = nil
        core.isDraining.store(true, ordering: .sequentiallyConsistent)
        for connection in core.table.all { connection.endIfIdle() }
    }

    /// Closes every connection and stops the daemon.
    private func stop() {
        // Afterwards no connection is suspended: each checks its phase before it suspends.
        for connection in core.table.all { connection.abort() }
        daemon = nil
        core.table.removeAll()
        for command in core.eventLoop.takeCommands(isLast: true) {
            switch command {
            case .drain(let done), .stop(_, let done): done.resume()
            }
        }
        for done in waiting { done.resume() }
    }
}
