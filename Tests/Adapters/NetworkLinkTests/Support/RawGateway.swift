import Configuration
import NetworkLink
import SyncWire
import ThreadExecutor
import ZeroMQ

/// A gateway's socket, with which a test sends and receives single messages.
///
/// `@unchecked Sendable`: the sockets are used only on the thread.
final class RawGateway: @unchecked Sendable {
    private let thread: DedicatedThread
    private let context: ZeroMQContext
    private let socket: ZeroMQSocket
    private let wakeup: ZeroMQWakeup

    init(_ address: NetworkAddress) async throws {
        thread = try DedicatedThread(name: "raw gateway")
        context = try ZeroMQContext()
        socket = try context.socket(.dealer)
        wakeup = try ZeroMQWakeup()
        try socket.connect("tcp://\(address)")
    }

    func send(_ message: GatewayMessage) async throws { try await send([message.encode()]) }

    func send(_ frames: [[UInt8]]) async throws {
        try await thread.run { () throws in _ = try socket.send(frames) }
    }

    /// Waits for the next message.
    func receive() async throws -> FanOutMessage {
        try await thread.run { () throws in
            while true {
                if let frames = try socket.receive() { return try FanOutMessage(decoding: frames[0]) }
                _ = try wakeup.wait(for: [socket])
            }
        }
    }

    /// Sends hello and waits for the description.
    func greet() async throws {
        try await send(.hello(epoch: Sample.epoch, wantsPassed: false))
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
