import Foundation

/// A connection to a server on this machine that sends exactly what a test wants, valid or not; closed with its last reference.
///
/// Its calls block: see ``onThread(_:)``.
final class RawConnection: Sendable {
    private let descriptor: Int32

    /// Ends a test on a server that hangs; no test depends on it otherwise.
    private static let timeout = timeval(tv_sec: 120, tv_usec: 0)

    /// Connects from 127.0.0.`host`.
    ///
    /// - Parameter receiveBuffer: its size in bytes; `nil` for the system's.
    init(port: UInt16, from host: UInt8 = 1, receiveBuffer: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw DeviceClient.Failure(description: "socket: \(errno)") }
        set(SO_RCVTIMEO, Self.timeout)
        set(SO_SNDTIMEO, Self.timeout)
        if let receiveBuffer { set(SO_RCVBUF, receiveBuffer) }
        guard Self.call(bind, descriptor, host: host, port: 0), Self.call(connect, descriptor, host: 1, port: port)
        else {
            throw DeviceClient.Failure(description: "connect: \(errno)")
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

    deinit { close(descriptor) }

    private func set<Value>(_ option: Int32, _ value: Value) {
        withUnsafeBytes(of: value) {
            _ = setsockopt(descriptor, SOL_SOCKET, option, $0.baseAddress, socklen_t($0.count))
        }
    }

    /// Closes with a reset later, which leaves no state in the kernel.
    func resetAtEnd() { set(SO_LINGER, linger(l_onoff: 1, l_linger: 0)) }

    /// Sends bytes; `false` when the connection has ended.
    @discardableResult
    func send(_ bytes: some Collection<UInt8>) -> Bool {
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

    /// Sends the end of the stream.
    func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Sends a byte at a time, one every few milliseconds, until the server answers or ends the connection.
    ///
    /// - Returns: how many bytes the server let pass.
    func trickle(_ byte: UInt8) -> Int {
        var count = 0
        var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while poll(&state, 1, 5) == 0, send([byte]) { count += 1 }
        return count
    }

    /// The first bytes that arrive, which stay unread.
    func peek(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let received = recv(descriptor, &bytes, count, Int32(MSG_PEEK) | Int32(MSG_WAITALL))
        return Array(bytes.prefix(max(0, received)))
    }

    /// Everything up to the end of the connection.
    func rest() throws -> Data {
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

    /// Runs blocking calls on a thread of their own.
    static func onThread<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Swift.Result { try work() }) }
        }
    }

    /// Sends bytes on a new connection and reads the answer, which may be empty.
    static func exchange(_ bytes: Data, port: UInt16, finishes: Bool = true) async throws -> Data {
        try await onThread {
            let connection = try RawConnection(port: port)
            connection.send(bytes)
            if finishes { connection.finishSending() }
            return try connection.rest()
        }
    }
}
