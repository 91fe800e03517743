import CEventFD
import CMicrohttpd
import Glibc
import Synchronization

/// What the supervisor's thread does; see `Supervisor`.
final class SupervisorThread: @unchecked Sendable {
    // Unchecked: made by the thread that starts the server, used by its own thread alone from `run` on.
    private let core: ServerCore
    private var listener: Listener?
    private var library: Library?
    private var nextNumber: UInt32 = 1
    private var isListening = false
    /// When to listen again after accepting failed.
    private var retryAt = UInt64.max
    private var stopAt: UInt64?
    /// Who waits for the stop; each call of `stop` one.
    private var waiting: [CheckedContinuation<Void, Never>] = []

    /// How long accepting rests when the system has no more descriptors and no connection ends.
    private static let retryTime: UInt64 = 100_000_000

    /// How many connections are taken before other events have their turn.
    private static let acceptBatch = 64

    /// Takes over what the thread works with.
    init(core: ServerCore, listener: consuming Listener, library: consuming Library) {
        self.core = core
        self.listener = consume listener
        self.library = consume library
    }

    /// Runs until the server is stopped.
    func run() {
        setListening(true)
        while true {
            for source in core.supervisor.wait(until: min(retryAt, stopAt ?? UInt64.max)) {
                switch source {
                case .wake: core.supervisor.clearWake()
                case .listener: accept()
                case .connection(let descriptor, let number):
                    if let connection = core.table[descriptor], connection.number == number { connection.peerLeft() }
                }
            }
            let now = MonotonicTime.now()
            checkDeadlines(now: now)
            if now >= retryAt { setListening(true) }
            for command in core.supervisor.takeCommands() { obey(command) }
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
        if core.supervisor.listen(to: socket, isOn) {
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
                // That one connection failed before it was taken.
                default: continue
                }
            }
            welcome(accepted, storage, length: length)
        }
    }

    private func welcome(_ socket: Int32, _ storage: sockaddr_storage, length: socklen_t) {
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
            core.supervisor.watch(connection, until: deadline)
            core.supervisor.hear(connection)
            if library?.add(socket, storage, length: length) != true { core.table.remove(connection) }
        }
    }

    // MARK: - Deadlines and stopping

    private func checkDeadlines(now: UInt64) {
        while let entry = core.supervisor.takeDue(at: now) {
            guard let connection = core.table[entry.descriptor], connection.number == entry.number else { continue }
            if let next = connection.checkDeadline(now: now) { core.supervisor.requeue(entry, at: next) }
        }
    }

    private func obey(_ command: Supervisor.Command) {
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

    /// Ends every connection, the library and the thread's own part.
    private func stop() {
        // After this none is suspended, and none comes: each looks at its phase before it suspends.
        for connection in core.table.all { connection.abort() }
        library = nil
        core.table.removeAll()
        for command in core.supervisor.end() {
            switch command {
            case .drain(let done), .stop(_, let done): done.resume()
            }
        }
        for done in waiting { done.resume() }
    }
}
