import Foundation

/// A request whose answer is never read; its connection is closed with its last reference.
final class UnreadRequest: Sendable {
    private let connection: RawConnection

    /// Connects with a small receive window and sends a request.
    init(_ client: DeviceClient, _ method: String, _ path: String, _ body: JSON? = nil) throws {
        connection = try RawConnection(port: client.port, receiveBuffer: 4096)
        let body = try body.map { try JSONSerialization.data(withJSONObject: $0.value) }
        guard connection.send(client.request(method, path, body)) else {
            throw DeviceClient.Failure(description: "send: \(errno)")
        }
    }

    /// Waits for the status line, which stays unread; its status.
    func status() async throws -> Int? {
        try await RawConnection.onThread { [connection] in
            Int(String(decoding: connection.peek(12), as: UTF8.self).suffix(3))
        }
    }
}
