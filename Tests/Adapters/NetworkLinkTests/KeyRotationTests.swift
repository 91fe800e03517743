import Configuration
import FanOutLink
import NetworkLink
import SyncModel
import Testing

/// The key of the link changes while gateways and fan-outs run: each is restarted with other keys, one after the other.
@Suite(.timeLimit(.minutes(5))) struct KeyRotationTests {
    private static let old = LinkKey(Secret(String(repeating: "0f", count: 32)))!
    private static let new = LinkKey(Secret(String(repeating: "f0", count: 32)))!

    /// What an end has: the key that it uses, and one that it accepts.
    struct Keys: Sendable, CustomTestStringConvertible {
        let key: LinkKey
        let accepted: LinkKey?
        let testDescription: String

        static let before = Keys(key: old, accepted: nil, testDescription: "old")
        static let first = Keys(key: old, accepted: new, testDescription: "old, accepts new")
        static let second = Keys(key: new, accepted: old, testDescription: "new, accepts old")
        static let after = Keys(key: new, accepted: nil, testDescription: "new")
        /// Both ends in each step of a change of keys, and in two successive ones.
        static let meetings: [(Keys, Keys)] = [
            (before, before), (first, before), (before, first), (first, first), (second, first), (first, second),
            (second, second), (after, second), (second, after), (after, after),
        ]
    }

    private func expectConnection(_ gateway: ConnectedGateway, _ served: ServedFanOut, _ owner: SyncID) async throws {
        await gateway.served()
        served.fanOut.append(Sample.rows(1...3), to: owner)
        #expect(try await gateway.remote.heads(of: [owner]) == [TimeStamp(3)])
    }

    /// While one step is taken, ends before and after it meet in any combination.
    @Test(arguments: Keys.meetings)
    func endsOfSuccessiveStepsConnect(fanOut: Keys, gateway: Keys) async throws {
        let served = try await ServedFanOut(key: fanOut.key, accepting: fanOut.accepted)
        let connected = try await ConnectedGateway(to: [served.address], key: gateway.key, accepting: gateway.accepted)
        try await expectConnection(connected, served, Sample.owner(of: 2))
        #expect(!connected.log.lines.values.contains { $0.contains("Fan-out unavailable") })
        await stop(connected, served)
    }

    @Test func gatewaysWithTheOldAndTheNewKeyUseOneFanOut() async throws {
        let served = try await ServedFanOut(key: Self.old, accepting: Self.new)
        let gateways = [
            try await ConnectedGateway(to: [served.address], key: Self.old),
            try await ConnectedGateway(to: [served.address], key: Self.old, accepting: Self.new),
            try await ConnectedGateway(to: [served.address], key: Self.new, accepting: Self.old),
        ]
        for (number, gateway) in gateways.enumerated() {
            try await expectConnection(gateway, served, Sample.owner(of: number))
        }
        for gateway in gateways { await stop(gateway) }
        await served.server.stop()
    }

    @Test(arguments: [(Keys.after, Keys.before), (Keys.before, Keys.after), (Keys.after, Keys.first)])
    func aDroppedKeyNoLongerConnects(fanOut: Keys, gateway: Keys) async throws {
        let served = try await ServedFanOut(key: fanOut.key, accepting: fanOut.accepted)
        let connected = try await ConnectedGateway(to: [served.address], key: gateway.key, accepting: gateway.accepted)
        await connected.log.until("Fan-out unavailable")
        #expect(connected.remote.unservedPartitions.count == Sample.partitions)
        await stop(connected, served)
    }

    /// Each attempt after a pause begins with the key that the fan-out had the last time.
    @Test func aFanOutThatComesBackWithTheNewKeyIsConnectedAgain() async throws {
        let served = try await ServedFanOut(key: Self.old, accepting: Self.new, at: Sample.ownAddress())
        let gateway = try await ConnectedGateway(to: [served.address], key: Self.new, accepting: Self.old)
        await gateway.served()
        await served.server.stop()
        await gateway.unserved.until { $0.last?.count == Sample.partitions }
        let again = try await ServedFanOut(key: Self.new, at: served.address)
        await gateway.heartbeat()
        try await expectConnection(gateway, again, Sample.owner(of: 0))
        await stop(gateway, again)
    }
}
