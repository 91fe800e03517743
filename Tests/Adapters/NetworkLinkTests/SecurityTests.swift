import Configuration
import FanOutLink
import NetworkLink
import Observability
import SyncModel
import Testing
import ThreadExecutor
import ZeroMQ

/// Beyond this machine both sides authenticate with a key, and other clients get no response.
@Suite(.timeLimit(.minutes(5))) struct SecurityTests {
    private static let key = LinkKey(Secret(String(repeating: "0f", count: 32)))!
    private static let otherKey = LinkKey(Secret(String(repeating: "f0", count: 32)))!
    private static let advice = "check that link.key-file is the same on every gateway and fan-out"

    @Test func sidesWithTheSameKeyConnect() async throws {
        let served = try await ServedFanOut(key: Self.key)
        let gateway = try await ConnectedGateway(to: [served.address], key: Self.key)
        await gateway.served()
        let owner = Sample.owner(of: 2)
        served.fanOut.append(Sample.rows(1...3), to: owner)
        #expect(try await gateway.remote.heads(of: [owner]) == [TimeStamp(3)])
        await stop(gateway, served)
    }

    @Test func gatewayWithADifferentKeyIsRejected() async throws {
        let served = try await ServedFanOut(key: Self.key)
        let gateway = try await ConnectedGateway(to: [served.address], key: Self.otherKey)
        await served.log.until("the peer has a different key")
        await served.log.until(Self.advice)
        await expectRejected(gateway, served)
    }

    // Either side may notice first that only one encrypts; both log the same advice.
    @Test func gatewayWithoutKeyIsRejected() async throws {
        let served = try await ServedFanOut(key: Self.key)
        let gateway = try await ConnectedGateway(to: [served.address])
        await served.log.until(Self.advice)
        await expectRejected(gateway, served)
    }

    @Test func gatewayWithKeyRejectsFanOutWithoutKey() async throws {
        let served = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [served.address], key: Self.key)
        await gateway.log.until(Self.advice)
        await expectRejected(gateway, served)
    }

    private func expectRejected(_ gateway: ConnectedGateway, _ served: ServedFanOut) async {
        await gateway.log.until("Fan-out unavailable")
        #expect(gateway.remote.unservedPartitions.count == Sample.partitions)
        await #expect(throws: FanOutError.self) { try await gateway.remote.heads(of: [Sample.owner(of: 0)]) }
        await stop(gateway, served)
    }

    @Test func clientWithOnlyTheServersPublicKeyIsNotAdmitted() async throws {
        let thread = try DedicatedThread(name: "sockets")
        let (refused, event) = try await thread.run { () throws in
            let context = try ZeroMQContext()
            defer { context.close() }
            let server = try CurveKeys(secret: Array(repeating: 1, count: 32))
            let known = try CurveKeys(secret: Array(repeating: 2, count: 32))
            let stranger = try CurveKeys(secret: Array(repeating: 3, count: 32))
            let authenticator = try ZAPAuthenticator(context, admitting: [known.publicKey])
            defer { authenticator.close() }
            let router = try context.socket(.router)
            defer { router.close() }
            try router.serveCurve(server, domain: "weir")
            try router.bind("tcp://127.0.0.1:0")
            let dealer = try context.socket(.dealer)
            defer { dealer.close() }
            dealer.set(.reconnectInterval, -1)
            try dealer.useCurve(stranger, server: server.publicKey)
            let monitor = try ZeroMQMonitor(dealer, in: context, name: "dealer")
            defer { monitor.close() }
            try dealer.connect(try router.lastEndpoint())
            let wakeup = try ZeroMQWakeup()
            #expect(try wakeup.wait(for: [authenticator.socket]) == [true])
            let refused = try authenticator.handleRequests()
            _ = try wakeup.wait(for: [monitor.socket])
            return (refused, try monitor.next())
        }
        #expect(refused == 1)
        #expect(event == .refused(.notAdmitted))
        await thread.close()
    }

    @Test func addressesBeyondLoopbackRequireAKey() throws {
        for text in ["0.0.0.0:7790", "10.0.0.1:7790", "[2001:db8::1]:7790", "fan-out.internal:7790", "127.evil.com:1"] {
            let address = try #require(NetworkAddress(text))
            let problem = try #require(throws: LinkProblem.self) {
                try FanOutServer(
                    FanOutServerConfiguration(address: address), link: LinkConfiguration(),
                    serving: ScriptedFanOut(), description: .init(epoch: "e1", partitions: 1), logger: .disabled)
            }
            #expect(problem.description.contains("openssl rand -hex 32"))
            #expect(throws: LinkProblem.self) {
                try RemoteFanOut(
                    RemoteFanOutConfiguration(fanOuts: [address]), link: LinkConfiguration(), epoch: "e1",
                    partitions: 1, logger: .disabled)
            }
        }
        for text in ["127.0.0.1:0", "127.3.2.1:0", "[::1]:0", "localhost:0"] {
            _ = try FanOutServer(
                FanOutServerConfiguration(address: try #require(NetworkAddress(text))), link: LinkConfiguration(),
                serving: ScriptedFanOut(), description: .init(epoch: "e1", partitions: 1), logger: .disabled)
        }
    }

    @Test func keyIsHexadecimalAndNeverShown() {
        #expect(LinkKey(Secret(String(repeating: "0", count: 63) + "g")) == nil)
        #expect(LinkKey(Secret(String(repeating: "0", count: 62))) == nil)
        #expect(LinkKey(Secret(String(repeating: "aB", count: 32))) != nil)
        #expect(!"\(Self.key)".contains("15"))
    }
}
