import Foundation
import ThreadExecutor

/// A request whose answer nobody reads; closed with its last reference.
final class UnreadRequest: Sendable {
    private let descriptor: Int32

    /// Connects with a small window and sends a request.
    init(_ client: DeviceClient, _ method: String, _ path: String, _ body: JSON? = nil) throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw DeviceClient.Failure(description: "socket: \(errno)") }
        self.descriptor = descriptor
        var size: Int32 = 4096
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = client.port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else { throw DeviceClient.Failure(description: "connect: \(errno)") }
        var head = "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        for (name, value) in client.headers { head += "\(name): \(value)\r\n" }
        let bytes = try body.map { try JSONSerialization.data(withJSONObject: $0.value) } ?? Data()
        if body != nil { head += "Content-Type: application/json\r\nContent-Length: \(bytes.count)\r\n" }
        let request = Data((head + "\r\n").utf8) + bytes
        let sent = request.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        guard sent == request.count else { throw DeviceClient.Failure(description: "send: \(errno)") }
    }

    deinit { close(descriptor) }

    /// Waits for the answer's first line, which stays unread; its status.
    func status() async throws -> Int? {
        let thread = try DedicatedThread(name: "peek")
        let line = await thread.run { [descriptor] in
            var line = [UInt8](repeating: 0, count: 12)
            let count = recv(descriptor, &line, line.count, Int32(MSG_PEEK) | Int32(MSG_WAITALL))
            return String(decoding: line.prefix(max(0, count)), as: UTF8.self)
        }
        await thread.close()
        return Int(line.suffix(3))
    }
}
