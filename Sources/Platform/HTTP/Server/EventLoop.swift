import CEventFD
import Glibc
import Synchronization

/// The epoll set, deadlines and commands of the server's event-loop thread (`EventLoopThread`).
///
/// The thread accepts connections, enforces their deadlines, detects clients that disconnect, and stops the server. It
/// sleeps in `epoll_wait` until the next event or deadline.
final class EventLoop: Sendable {
    enum Command {
        /// Accept no new connections and close the idle ones.
        case drain(CheckedContinuation<Void, Never>)
        /// Drain, wait until no request is in progress or until the time, and close everything.
        case stop(UInt64, CheckedContinuation<Void, Never>)
    }

    /// The source of an event of `epoll_wait`.
    enum Source {
        case wake
        case listener
        case connection(descriptor: Int32, number: UInt32)
    }

    private struct State {
        /// One or two entries for each connection; those of closed connections stay until their time, at most
        /// `requestTimeout`.
        var deadlines = DeadlineHeap()
        var commands: [Command] = []
        /// When `epoll_wait` times out.
        var wakesAt = UInt64.max
        var hasStopped = false
    }

    private let epoll: Descriptor
    private let event: Descriptor
    private let state = Mutex(State())

    init() throws(HTTPServerError) {
        epoll = try Descriptor.epoll()
        event = try Descriptor.event()
        guard control(EPOLL_CTL_ADD, event.number, EPOLLIN.rawValue, tag: 0) else {
            throw .cannotStart(reason: HTTPServerError.text(errno))
        }
    }

    func wake() { event.signal() }

    /// Has the thread check the deadline of a connection at that time.
    func schedule(_ connection: Connection, at time: UInt64) {
        let isSooner = state.withLock { state in
            state.deadlines.insert(
                .init(time: time, descriptor: connection.descriptor, number: connection.number))
            return time < state.wakesAt
        }
        if isSooner { wake() }
    }

    func takeDue(at now: UInt64) -> DeadlineHeap.Entry? { state.withLock { $0.deadlines.takeDue(at: now) } }

    /// Schedules the entry again; called by the thread itself.
    func requeue(_ entry: DeadlineHeap.Entry, at time: UInt64) {
        state.withLock { $0.deadlines.insert(.init(time: time, descriptor: entry.descriptor, number: entry.number)) }
    }

    /// `false` if the thread has ended.
    func send(_ command: Command) -> Bool {
        let isAccepted = state.withLock { state in
            guard !state.hasStopped else { return false }
            state.commands.append(command)
            return true
        }
        if isAccepted { wake() }
        return isAccepted
    }

    /// - Parameter isLast: accepts no further commands.
    func takeCommands(isLast: Bool = false) -> [Command] {
        state.withLock { state in
            state.hasStopped = isLast
            defer { state.commands = [] }
            return state.commands
        }
    }

    /// Starts or stops observing new connections of a listening socket.
    func observeConnections(of socket: Int32, _ isOn: Bool) -> Bool {
        control(isOn ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, socket, EPOLLIN.rawValue, tag: UInt64.max)
    }

    /// Observes when the client closes its side.
    ///
    /// If the system has no memory for it, the server detects it at the next write.
    func observeClose(of connection: Connection) {
        let tag = UInt64(connection.number) << 32 | UInt64(UInt32(connection.descriptor))
        _ = control(EPOLL_CTL_ADD, connection.descriptor, EPOLLRDHUP.rawValue | EPOLLET.rawValue, tag: tag)
    }

    /// Must be called before the descriptor is closed.
    func stopObservingClose(of connection: Connection) {
        _ = control(EPOLL_CTL_DEL, connection.descriptor, 0, tag: 0)
    }

    private func control(_ operation: Int32, _ descriptor: Int32, _ events: UInt32, tag: UInt64) -> Bool {
        var event = epoll_event(events: events, data: epoll_data_t(u64: tag))
        return epoll_ctl(epoll.number, operation, descriptor, &event) == 0
    }

    /// Waits for events, at the latest until a time.
    func wait(until latest: UInt64) -> [Source] {
        let until = state.withLock { state in
            state.wakesAt = min(latest, state.deadlines.earliest ?? UInt64.max)
            return state.commands.isEmpty ? state.wakesAt : 0
        }
        var timeout: Int32 = -1
        if until != UInt64.max {
            let now = MonotonicTime.now()
            // Rounded up, so that the deadline has passed on waking.
            timeout = until <= now ? 0 : Int32(clamping: (until - now + 999_999) / 1_000_000)
        }
        return withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: 64) { events in
            let count = epoll_wait(epoll.number, events.baseAddress, Int32(events.count), timeout)
            return events.prefix(max(0, Int(count))).map { event in
                switch event.data.u64 {
                case 0: return .wake
                case UInt64.max: return .listener
                case let tag: return .connection(descriptor: Int32(truncatingIfNeeded: tag), number: UInt32(tag >> 32))
                }
            }
        }
    }

    func clearWake() { event.clear() }
}

/// When to check the deadlines of connections: a binary heap, earliest first.
struct DeadlineHeap {
    struct Entry {
        var time: UInt64
        var descriptor: Int32
        var number: UInt32
    }

    private var entries: [Entry] = []

    var earliest: UInt64? { entries.first?.time }

    mutating func insert(_ entry: Entry) {
        entries.append(entry)
        var child = entries.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard entries[child].time < entries[parent].time else { return }
            entries.swapAt(child, parent)
            child = parent
        }
    }

    /// Removes the earliest entry if it is due.
    mutating func takeDue(at now: UInt64) -> Entry? {
        guard let first = entries.first, first.time <= now else { return nil }
        let last = entries.removeLast()
        guard !entries.isEmpty else { return first }
        entries[0] = last
        var parent = 0
        while true {
            var smallest = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < entries.count && entries[child].time < entries[smallest].time {
                smallest = child
            }
            if smallest == parent { return first }
            entries.swapAt(parent, smallest)
            parent = smallest
        }
    }
}
