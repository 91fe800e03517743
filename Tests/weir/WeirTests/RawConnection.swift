import Foundation

/// A connection to a server on this machine that says exactly what a test wants, however wrong.
///
/// Blocks: for threads of their own (`RawConnection.onThread`).
struct RawConnection: ~Copyable {
    // Invariant: an open socket until deinit.
    private let descriptor: Int32

    /// What keeps a broken server from stopping the tests for ever; nothing waits for it otherwise.
    private static let patience = timeval(tv_sec: 120, tv_usec: 0)

    /// Connects, from an address of the loopback network: 127.0.0.N.
    init(port: UInt16, from host: UInt8 = 1) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw DeviceClient.Failure(description: "socket: \(errno)") }
        var patience = Self.patience
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        guard Self.call(bind, descriptor, host: host, port: 0), Self.call(connect, descriptor, host: 1, port: port)
        else {
            let code = errno
            close(descriptor)
            throw DeviceClient.Failure(description: "connect: \(code)")
        }
    }

    private static func call(
        _ function: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, _ descriptor: Int32, host: UInt8, port: UInt16
    ) -> Bool {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = (0x7F00_0000 + UInt32(host)).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { function(descriptor, $0, size) }
        } == 0
    }

    /// Has the end of the connection leave no trace in the system: a reset instead of a farewell.
    borrowing func resetAtEnd() {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Foundation.linger>.size))
    }

    deinit { close(descriptor) }

    /// Sends bytes; `false` when the server takes no more.
    @discardableResult
    borrowing func send(_ bytes: some Collection<UInt8>) -> Bool {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes {
                Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { return false }
            rest = rest.dropFirst(sent)
        }
        return true
    }

    /// Says that nothing more comes.
    borrowing func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Sends a byte at a time, one every few milliseconds, until the server answers or ends the connection.
    ///
    /// - Returns: how many bytes the server let pass.
    borrowing func trickle(_ byte: UInt8) -> Int {
        var count = 0
        var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while poll(&state, 1, 5) == 0, send([byte]) { count += 1 }
        return count
    }

    /// Everything up to the end of the connection.
    borrowing func rest() throws -> Data {
        var data = Data()
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count > 0 { data.append(contentsOf: buffer[..<count]) }
            if count == 0 || (count < 0 && errno == ECONNRESET) { return data }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw DeviceClient.Failure(description: "recv: \(errno)") }
        }
    }

    /// Runs something that blocks beside Swift's own threads.
    static func onThread<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Swift.Result { try work() }) }
        }
    }

    /// Sends bytes on a connection of their own and reads what comes back, which may be nothing.
    static func exchange(_ bytes: Data, port: UInt16, finishes: Bool = true) async throws -> Data {
        try await onThread {
            let connection = try RawConnection(port: port)
            connection.send(bytes)
            if finishes { connection.finishSending() }
            return try connection.rest()
        }
    }
}

/// Connections that are held open together.
struct HeldConnections: ~Copyable {
    private let places: UnsafeMutablePointer<RawConnection>
    private var count = 0
    private let room: Int

    init(room: Int) {
        self.room = room
        places = .allocate(capacity: room)
    }

    deinit {
        places.deinitialize(count: count)
        places.deallocate()
    }

    mutating func add(_ connection: consuming RawConnection) {
        precondition(count < room, "there is room for \(room)")
        (places + count).initialize(to: connection)
        count += 1
    }

    /// Everything that comes on a connection up to its end.
    func rest(of index: Int) throws -> Data {
        precondition((0..<count).contains(index), "there is such a connection")
        return try places[index].rest()
    }
}
