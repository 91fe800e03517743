import Configuration
import FanOutLink
import Glibc
import LinkWire
import NetworkLink
import Observability
import SyncModel
import Testing

/// No gateway costs a fan-out more than its share, and whatever comes to the port harms nobody.
@Suite(.timeLimit(.minutes(3))) struct BoundsTests {
    @Test func whoDoesNotReadGetsNoMoreAnswersAndIsDropped() async throws {
        let served = try await ServedFanOut { $0.maximumUnreadBytes = 1 << 20 }
        let owner = Ends.owner(of: 1)
        let row = ScriptedFanOut.Row(
            device: Ends.device, timeStamp: TimeStamp(1), json: Array(repeating: UInt8(ascii: "x"), count: 300_000))
        served.fanOut.append([row], to: owner)
        let raw = try await RawGateway(served.address)
        try await raw.greet()
        for number in 1...10 as ClosedRange<Int64> {
            try await raw.send(.ask(number: number, within: .zero, .pull(Ends.pull([owner]))))
        }
        // It is told by a few bytes; it reads here so that the test knows.
        var (full, refused) = (0, 0)
        for _ in 0..<10 {
            switch try await raw.receive() {
            case .answer(_, .pages): full += 1
            case .answer(_, .failure(.notReady("the gateway has not read the answers before"))): refused += 1
            case let reply: Issue.record("\(reply)")
            }
        }
        #expect(full == 3 && refused == 7)
        // Bytes that it says it has make room.
        try await raw.send(.ping(received: 1 << 40))
        #expect(try await raw.receive() == .pong)
        try await raw.send(.ask(number: 11, within: .zero, .pull(Ends.pull([owner]))))
        guard case .answer(11, .pages) = try await raw.receive() else {
            Issue.record("there is room")
            return
        }
        // It pings, but says no more that it reads.
        for _ in 0..<4 {
            try await raw.send(.ping(received: 0))
            #expect(try await raw.receive() == .pong)
            await served.clock.beat()
        }
        await served.log.until("it does not read")
        try await raw.send(.ping(received: 0))
        #expect(try await raw.receive() == .goodbye("the connection is not known (any more)"))
        await raw.close()
        await served.server.stop()
    }

    @Test func whatIsNoMessageEndsTheConnection() async throws {
        let served = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let raw = try await RawGateway(served.address)
        try await raw.greet()
        try await raw.send([[0xFF, 0xFF, 0xFF]])
        guard case .goodbye = try await raw.receive() else {
            Issue.record("it is told goodbye")
            return
        }
        try await raw.send([[1], [2], [3]])
        #expect(try await raw.receive() == .goodbye("a message has another number of parts than one"))
        try await raw.send(.heads)
        #expect(try await raw.receive() == .goodbye("the connection is not known (any more)"))
        try await raw.greet()
        try await raw.send(.hello(epoch: Ends.epoch, wantsPassed: false))
        #expect(try await raw.receive() == .goodbye("it said hello twice"))
        try await raw.greet()
        let part = Ends.part(of: Ends.owner(of: 0))
        for _ in 0..<2 { try await raw.send(.ask(number: 1, within: .seconds(9), .outcome(part))) }
        #expect(try await raw.receive() == .goodbye("it used the number of a question twice"))
        try await raw.send([[0x08, 0x02]])
        #expect(try await raw.receive() == .goodbye("it speaks a newer version: update the fan-outs first"))
        #expect(try await gateway.remote.heads(of: [Ends.owner(of: 0)]) == [.zero])
        await raw.close()
        await stop(gateway, served)
    }

    @Test func bytesOfAnythingElseOnThePortHarmNobody() async throws {
        for key in [nil, LinkKey(Secret(String(repeating: "0f", count: 32)))] {
            let served = try await ServedFanOut(key: key)
            let gateway = try await ConnectedGateway(to: [served.address], key: key)
            await gateway.served()
            var descriptors: [Int32] = []
            defer { for descriptor in descriptors { _ = close(descriptor) } }
            // What looks like the greeting of a version that nobody speaks is told apart, and the log says so.
            let greeting = [0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0x7F, 3, 0] + Array("SOMETHING".utf8)
            let garbage = (0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 37) }
            for bytes in [
                Array("GET / HTTP/1.1\r\nHost: weir\r\n\r\n".utf8), garbage, [0xFF] + garbage, [1, 0, 2, 1, 3],
            ] {
                descriptors.append(connection(to: served.address.port, sending: bytes))
            }
            let zeros = [UInt8](repeating: 0, count: 64 - greeting.count)
            descriptors.append(connection(to: served.address.port, sending: greeting + zeros + garbage))
            await served.log.until("A connection was refused")
            #expect(try await gateway.remote.heads(of: [Ends.owner(of: 0)]) == [.zero])
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
        // The other end may close before all is written.
        _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        return descriptor
    }

    @Test func anAddressThatIsTakenIsSaidSo() async throws {
        let served = try await ServedFanOut()
        let other = try FanOutServer(
            FanOutServerConfiguration(address: served.address), link: LinkConfiguration(), serving: ScriptedFanOut(),
            description: LinkDescription(epoch: "e1", partitions: 1), logger: .disabled)
        let problem = try await #require(throws: LinkProblem.self) { try await other.start() }
        #expect(problem.description.contains("the link cannot listen at \(served.address)"))
        #expect(problem.description.contains("Address already in use"))
        await served.server.stop()
    }

    @Test func stoppedBeforeItWasStartedItNeverRuns() async throws {
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

extension LinkRequest {
    /// A question that is always answered.
    fileprivate static let heads = LinkRequest.ask(number: 1, within: .zero, .heads([Ends.owner(of: 0)]))
}
