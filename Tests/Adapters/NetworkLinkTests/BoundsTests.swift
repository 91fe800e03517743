import Configuration
import FanOutLink
import Glibc
import NetworkLink
import Observability
import SyncModel
import Testing

/// Limits of a gateway's cost to a fan-out, and input from other programs.
@Suite(.timeLimit(.minutes(5))) struct BoundsTests {
    @Test func gatewayThatDoesNotReadIsLimitedAndDisconnected() async throws {
        let served = try await ServedFanOut { $0.maximumUnreadBytes = 1 << 20 }
        let owner = Sample.owner(of: 1)
        let row = ScriptedFanOut.Row(
            device: Sample.device, timeStamp: TimeStamp(1), json: Array(repeating: UInt8(ascii: "x"), count: 300_000))
        served.fanOut.append([row], to: owner)
        let raw = try await RawGateway(served.address)
        try await raw.greet()
        for number in 1...10 as ClosedRange<Int64> {
            try await raw.send(.request(number: number, within: .zero, .pull(Sample.pull([owner]))))
        }
        // The server knows what was read only from pings; the test reads to see the responses.
        var (full, refused) = (0, 0)
        for _ in 0..<10 {
            switch try await raw.receive() {
            case .response(_, .pages): full += 1
            case .response(_, .failure(.notReady("the gateway has not read earlier responses"))): refused += 1
            case let reply: Issue.record("\(reply)")
            }
        }
        #expect(full == 3 && refused == 7)
        // A ping acknowledges the bytes.
        try await raw.send(.ping(received: 1 << 40))
        #expect(try await raw.receive() == .pong)
        try await raw.send(.request(number: 11, within: .zero, .pull(Sample.pull([owner]))))
        guard case .response(11, .pages) = try await raw.receive() else {
            Issue.record("the response was refused")
            return
        }
        // It pings without acknowledging more bytes. Heartbeats that arrive together count once.
        var reply = FanOutMessage.pong
        while reply == .pong {
            try Task.checkCancellation()
            await served.clock.heartbeat()
            try await raw.send(.ping(received: 0))
            reply = try await raw.receive()
        }
        #expect(reply == .goodbye("the connection is unknown"))
        await served.log.until("it does not read its messages")
        await raw.close()
        await served.server.stop()
    }

    @Test func invalidMessageEndsTheConnection() async throws {
        let served = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let raw = try await RawGateway(served.address)
        try await raw.greet()
        try await raw.send([[0xFF, 0xFF, 0xFF]])
        guard case .goodbye = try await raw.receive() else {
            Issue.record("no goodbye was received")
            return
        }
        try await raw.send([[1], [2], [3]])
        #expect(try await raw.receive() == .goodbye("a message must have one frame"))
        try await raw.send(.heads)
        #expect(try await raw.receive() == .goodbye("the connection is unknown"))
        try await raw.greet()
        try await raw.send(.hello(epoch: Sample.epoch, wantsPassed: false))
        #expect(try await raw.receive() == .goodbye("hello was sent twice"))
        try await raw.greet()
        let part = Sample.part(of: Sample.owner(of: 0))
        for _ in 0..<2 { try await raw.send(.request(number: 1, within: .seconds(9), .outcome(part, rows: .all))) }
        #expect(try await raw.receive() == .goodbye("a request number was used twice"))
        try await raw.send([[0x08, 0x02]])
        #expect(try await raw.receive() == .goodbye("it uses a newer version of the link: update the fan-outs first"))
        #expect(try await gateway.remote.heads(of: [Sample.owner(of: 0)]) == [.zero])
        await raw.close()
        await stop(gateway, served)
    }

    @Test func bytesOfOtherProtocolsDoNotAffectConnections() async throws {
        for key in [nil, LinkKey(Secret(String(repeating: "0f", count: 32)))] {
            let served = try await ServedFanOut(key: key)
            let gateway = try await ConnectedGateway(to: [served.address], key: key)
            await gateway.served()
            var descriptors: [Int32] = []
            defer { for descriptor in descriptors { _ = close(descriptor) } }
            // A handshake with an unknown mechanism is logged.
            let greeting = [0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0x7F, 3, 0] + Array("SOMETHING".utf8)
            let garbage = (0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 37) }
            for bytes in [
                Array("GET / HTTP/1.1\r\nHost: weir\r\n\r\n".utf8), garbage, [0xFF] + garbage, [1, 0, 2, 1, 3],
            ] {
                descriptors.append(connection(to: served.address.port, sending: bytes))
            }
            let zeros = [UInt8](repeating: 0, count: 64 - greeting.count)
            descriptors.append(connection(to: served.address.port, sending: greeting + zeros + garbage))
            await served.log.until("Connection rejected")
            #expect(try await gateway.remote.heads(of: [Sample.owner(of: 0)]) == [.zero])
            await stop(gateway, served)
        }
    }

    /// Opens a connection and writes bytes.
    private func connection(to port: UInt16, sending bytes: [UInt8]) -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        #expect(code == 0)
        // The server may close the connection before all is written.
        _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        return descriptor
    }

    @Test func addressInUseIsReported() async throws {
        let served = try await ServedFanOut()
        let other = try FanOutServer(
            FanOutServerConfiguration(address: served.address), link: LinkConfiguration(), serving: ScriptedFanOut(),
            description: LinkDescription(epoch: "e1", partitions: 1), logger: .disabled)
        let problem = try await #require(throws: LinkProblem.self) { try await other.start() }
        #expect(problem.description.contains("the link cannot listen at \(served.address)"))
        #expect(problem.description.contains("Address already in use"))
        await served.server.stop()
    }

    @Test func stopBeforeStartPreventsRunning() async throws {
        let server = try FanOutServer(
            FanOutServerConfiguration(address: NetworkAddress("127.0.0.1:0")!), link: LinkConfiguration(),
            serving: ScriptedFanOut(), description: LinkDescription(epoch: "e1", partitions: 1), logger: .disabled)
        await server.stop()
        try await server.run()
        #expect(server.address == nil)
        let remote = try RemoteFanOut(
            RemoteFanOutConfiguration(fanOuts: [NetworkAddress("127.0.0.1:1")!]), link: LinkConfiguration(),
            epoch: "e1", partitions: 1, logger: .disabled)
        await remote.stop()
        try await remote.run()
        #expect(remote.unservedPartitions == [0])
    }
}

extension GatewayMessage {
    /// A request that always has a response.
    fileprivate static let heads = GatewayMessage.request(number: 1, within: .zero, .heads([Sample.owner(of: 0)]))
}
