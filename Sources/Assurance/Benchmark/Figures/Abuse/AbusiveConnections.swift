import CEventFD
import Glibc
import LoadTools

/// Connections that one thread serves, each of which repeats its pattern as fast as the server answers.
///
/// Answers are counted and not looked at, and a connection pauses after a refusal, so that the load costs the server more
/// than this thread, which shares the processors with it.
struct AbusiveConnections: ~Copyable {
    /// What the server did with the requests of one kind.
    struct Count: Sendable {
        var answered = 0
        /// Answered with a status of 400 or more.
        var refused = 0
        /// Ended by the server without a complete answer.
        var closed = 0

        /// Requests that had no success.
        var ended: Int { refused + closed }
    }

    /// Nanoseconds between a refusal, or the end of a connection, and the next request.
    static let pause: Int64 = 100_000_000
    /// Nanoseconds between two bytes that were held back.
    fileprivate static let trickle: Int64 = 1_000_000_000
    /// Another address of this machine than that of the devices that are measured, as another client has.
    fileprivate static let address: UInt32 = 0x7F00_0002

    private let port: UInt16
    private let epoll: Int32
    private var connections: [AbusiveConnection] = []
    private var counts: [AbuseKind: Count] = [:]
    private var buffer = [UInt8](repeating: 0, count: 256 << 10)

    init(_ patterns: [AbusePattern], port: UInt16) throws(LoadFailure) {
        self.port = port
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard epoll >= 0 else { throw .system("epoll_create1", errno) }
        connections = patterns.map { AbusiveConnection(pattern: $0) }
    }

    deinit {
        for connection in connections where connection.descriptor >= 0 { Glibc.close(connection.descriptor) }
        Glibc.close(epoll)
    }

    /// Sends requests until a monotonic time.
    consuming func run(until end: Int64) throws(LoadFailure) -> [AbuseKind: Count] {
        var events = [epoll_event](repeating: epoll_event(), count: 64)
        while true {
            let now = SystemCall.nanoseconds()
            if now >= end { return counts }
            for index in connections.indices where connections[index].dueAt <= now { try proceed(index, now) }
            // Pauses are a hundred times as long.
            let count = epoll_wait(epoll, &events, Int32(events.count), 10)
            guard count >= 0 || errno == EINTR else { throw .system("epoll_wait", errno) }
            for event in events.prefix(Int(max(0, count))) {
                let index = Int(event.data.u64)
                if event.events & EPOLLOUT.rawValue != 0 { send(index) }
                if event.events & ~EPOLLOUT.rawValue != 0 { receive(index) }
            }
        }
    }

    /// Connects, or sends the next request or byte.
    private mutating func proceed(_ index: Int, _ now: Int64) throws(LoadFailure) {
        if connections[index].descriptor < 0 {
            connections[index].descriptor = try AbusiveConnection.connect(port)
            var event = epoll_event(events: events(of: index), data: epoll_data_t(u64: UInt64(index)))
            guard epoll_ctl(epoll, EPOLL_CTL_ADD, connections[index].descriptor, &event) == 0 else {
                throw .system("epoll_ctl", errno)
            }
            connections[index].begin()
        } else if connections[index].isComplete {
            connections[index].begin()
        } else {
            connections[index].release(at: now + Self.trickle)
        }
        send(index)
    }

    private func events(of index: Int) -> UInt32 {
        let always = EPOLLOUT.rawValue | EPOLLET.rawValue | EPOLLRDHUP.rawValue
        return connections[index].pattern.readsAnswers ? always | EPOLLIN.rawValue : always
    }

    private mutating func send(_ index: Int) {
        if !connections[index].send() { close(index) }
    }

    private mutating func receive(_ index: Int) {
        while connections[index].descriptor >= 0 {
            let received = buffer.withUnsafeMutableBytes {
                recv(connections[index].descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT))
            }
            if received < 0, errno == EINTR { continue }
            if received < 0, errno == EAGAIN { return }
            guard received > 0 else { return close(index) }
            guard connections[index].pattern.readsAnswers else { continue }
            guard let status = connections[index].read(buffer[..<received]) else { continue }
            let kind = connections[index].pattern.kind
            if status < 400 {
                counts[kind, default: Count()].answered += 1
                connections[index].begin()
                send(index)
            } else {
                counts[kind, default: Count()].refused += 1
                connections[index].pause(until: SystemCall.nanoseconds() + Self.pause)
            }
        }
    }

    private mutating func close(_ index: Int) {
        guard connections[index].descriptor >= 0 else { return }
        if !connections[index].isComplete { counts[connections[index].pattern.kind, default: Count()].closed += 1 }
        Glibc.close(connections[index].descriptor)
        connections[index].descriptor = -1
        connections[index].dueAt = SystemCall.nanoseconds() + Self.pause
    }
}

/// The state of one connection.
private struct AbusiveConnection {
    let pattern: AbusePattern
    /// -1 where it is not connected.
    var descriptor: Int32 = -1
    /// When it connects or sends next, unless an answer comes first.
    var dueAt: Int64 = 0
    /// Whether the last request has its answer.
    private(set) var isComplete = true
    private var request = -1
    private var sent = 0
    /// Bytes of the request that may be sent by now.
    private var allowed = 0
    /// The beginning of an answer whose head is not complete.
    private var head: [UInt8] = []
    private var status = 0
    /// Bytes of the answer that are still to come; `nil` before its head is complete.
    private var left: Int?

    init(pattern: AbusePattern) { self.pattern = pattern }

    static func connect(_ port: UInt16) throws(LoadFailure) -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .system("socket", errno) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        func call(_ call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Bool {
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    call(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
        }
        address.sin_addr.s_addr = AbusiveConnections.address.bigEndian
        let isBound = call { bind($0, $1, $2) }
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        guard isBound, call({ Glibc.connect($0, $1, $2) }) else {
            let code = errno
            Glibc.close(descriptor)
            throw .system("connecting to port \(port)", code)
        }
        return descriptor
    }

    mutating func begin() {
        request = (request + 1) % pattern.requests.count
        sent = 0
        allowed = pattern.requests[request].count - pattern.heldBack
        head = []
        left = nil
        isComplete = false
        dueAt = pattern.heldBack > 0 ? SystemCall.nanoseconds() + AbusiveConnections.trickle : .max
    }

    mutating func pause(until moment: Int64) { dueAt = moment }

    /// Allows one more of the bytes that are held back.
    mutating func release(at next: Int64) {
        allowed = min(allowed + 1, pattern.requests[request].count)
        dueAt = next
    }

    /// Sends what the socket accepts; `false` where the connection has ended.
    mutating func send() -> Bool {
        while descriptor >= 0, !isComplete, sent < allowed {
            let count = pattern.requests[request].withUnsafeBytes {
                Glibc.send(
                    descriptor, $0.baseAddress! + sent, allowed - sent,
                    Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            }
            if count < 0, errno == EINTR { continue }
            // An answer may have come before the end of the request.
            if count < 0 { return errno == EAGAIN || errno == EPIPE || errno == ECONNRESET }
            sent += count
        }
        return true
    }

    /// Takes bytes of the answer; returns its status at its end.
    mutating func read(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard !isComplete else { return nil }
        if let known = left {
            left = known - bytes.count
        } else {
            head += bytes
            guard let end = head.firstRange(of: "\r\n\r\n", from: 0) else { return nil }
            status = head.number(from: 9)
            let name = head.firstRange(of: "\r\nContent-Length: ", from: 0)
            let size = name.map { head.number(from: $0.upperBound) } ?? 0
            left = size - (head.count - end.upperBound)
            head = []
        }
        guard let left, left <= 0 else { return nil }
        isComplete = true
        return status
    }
}
