import CEventFD
import Glibc
import Synchronization

/// The meeting place of a server's own thread with the others: what it waits for and what it is told to do.
///
/// The thread takes new connections, ends late ones, notices clients that leave, and stops the server. It sleeps in
/// `epoll_wait` until one of them or the next deadline.
final class Supervisor: Sendable {
    /// What the thread is told to do.
    enum Command {
        /// Take no new connections, end the idle ones.
        case drain(CheckedContinuation<Void, Never>)
        /// Do that, wait until no request is under way or the time has come, and end everything.
        case stop(UInt64, CheckedContinuation<Void, Never>)
    }

    /// Who an event of `epoll_wait` is about.
    enum Source {
        case wake
        case listener
        case connection(descriptor: Int32, number: UInt32)
    }

    private struct State {
        /// One entry a connection or two; those of closed connections stay until their time, at most `requestTimeout`.
        var deadlines = DeadlineHeap()
        var commands: [Command] = []
        /// When the thread wakes by itself.
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

    /// Wakes the thread.
    func wake() {
        event.signal()
    }

    /// Has the thread look at a connection at that time.
    func watch(_ connection: Connection, until time: UInt64) {
        let isSooner = state.withLock { state in
            state.deadlines.insert(
                .init(time: time, descriptor: connection.descriptor, number: connection.number))
            return time < state.wakesAt
        }
        if isSooner { wake() }
    }

    /// The next connection to look at.
    func takeDue(at now: UInt64) -> DeadlineHeap.Entry? {
        state.withLock { $0.deadlines.takeDue(at: now) }
    }

    /// Looks at a connection again later; for the thread itself.
    func requeue(_ entry: DeadlineHeap.Entry, at time: UInt64) {
        state.withLock { $0.deadlines.insert(.init(time: time, descriptor: entry.descriptor, number: entry.number)) }
    }

    /// Has the thread do something; `false` when it has ended.
    func tell(_ command: Command) -> Bool {
        let isTaken = state.withLock { state in
            guard !state.hasStopped else { return false }
            state.commands.append(command)
            return true
        }
        if isTaken { wake() }
        return isTaken
    }

    /// What the thread has been told since it last asked.
    func takeCommands() -> [Command] {
        state.withLock { state in
            defer { state.commands = [] }
            return state.commands
        }
    }

    /// The thread ends; what it was told at last is returned.
    func end() -> [Command] {
        state.withLock { state in
            state.hasStopped = true
            defer { state.commands = [] }
            return state.commands
        }
    }

    /// Has the thread hear of new connections at a listening socket, or not.
    func listen(to socket: Int32, _ isOn: Bool) -> Bool {
        control(isOn ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, socket, EPOLLIN.rawValue, tag: UInt64.max)
    }

    /// Has the thread hear when a client closes its side.
    ///
    /// Where the system has no room for it, the server notices at the next write.
    func hear(_ connection: Connection) {
        let tag = UInt64(connection.number) << 32 | UInt64(UInt32(connection.descriptor))
        _ = control(EPOLL_CTL_ADD, connection.descriptor, EPOLLRDHUP.rawValue | EPOLLET.rawValue, tag: tag)
    }

    /// Undoes `hear`; before the descriptor is closed.
    func stopHearing(_ connection: Connection) {
        _ = control(EPOLL_CTL_DEL, connection.descriptor, 0, tag: 0)
    }

    private func control(_ operation: Int32, _ descriptor: Int32, _ events: UInt32, tag: UInt64) -> Bool {
        var event = epoll_event(events: events, data: epoll_data_t(u64: tag))
        return epoll_ctl(epoll.number, operation, descriptor, &event) == 0
    }

    /// Sleeps until something happens, at the latest at a time, and says what.
    func wait(until latest: UInt64) -> [Source] {
        let until = state.withLock { state in
            state.wakesAt = min(latest, state.deadlines.soonest ?? UInt64.max)
            return state.commands.isEmpty ? state.wakesAt : 0
        }
        var timeout: Int32 = -1
        if until != UInt64.max {
            let now = MonotonicTime.now()
            // Rounded up, so that the time has come on waking.
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

    /// Takes back the wake-ups.
    func clearWake() {
        event.clear()
    }
}
