import Configuration
import LinkWire
import SyncWire
import ThreadExecutor
import ZeroMQ

/// A gateway's socket alone, which does what a test says and reads when it is told to.
///
/// `@unchecked Sendable`: the sockets are used on the thread alone.
final class RawGateway: @unchecked Sendable {
    private let thread: DedicatedThread
    private let context: ZeroMQContext
    private let socket: ZeroMQSocket
    private let bell: ZeroMQWakeup

    init(_ address: NetworkAddress) async throws {
        thread = try DedicatedThread(name: "raw gateway")
        context = try ZeroMQContext()
        socket = try context.socket(.dealer)
        bell = try ZeroMQWakeup()
        try socket.connect("tcp://\(address)")
    }

    func send(_ request: LinkRequest) async throws { try await send([request.encode()]) }

    func send(_ parts: [[UInt8]]) async throws {
        try await thread.run { () throws in _ = try socket.send(parts) }
    }

    /// Waits for the next message.
    func receive() async throws -> LinkReply {
        try await thread.run { () throws in
            while true {
                if let parts = try socket.receive() { return try LinkReply(decoding: parts[0]) }
                _ = try bell.wait(for: [socket])
            }
        }
    }

    /// Says hello and waits for the description.
    func greet() async throws {
        try await send(.hello(epoch: Ends.epoch, wantsPassed: false))
        _ = try await receive()
    }

    func close() async {
        await thread.run {
            socket.close()
            context.close()
        }
        await thread.close()
    }
}
