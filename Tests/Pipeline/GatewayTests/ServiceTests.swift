import ChangeLog
import Configuration
import FanOutLink
import Gateway
import HTTP
import Observability
import SyncModel
import Synchronization
import TestSignals
import Testing

@Suite(.timeLimit(.minutes(5))) struct ServiceTests {
    private func service(
        _ host: String, authentication: some Authenticator = NoAuthentication(), origins: [String] = []
    ) throws -> GatewayService<MemoryLog, ScriptedLink, some Authenticator> {
        var configuration = GatewayConfiguration()
        configuration.address = try #require(NetworkAddress(host: host, port: 0))
        configuration.corsOrigins = origins
        return GatewayService(
            GatewayHandler(
                log: MemoryLog(), link: ScriptedLink(), authenticator: authentication,
                history: History(epoch: "e1", partitions: 4), schemas: { TestGateway.schemas },
                configuration: configuration))
    }

    @Test(arguments: ["0.0.0.0", "::", "192.0.2.1", "127.0.0.1.example", "128.0.0.1", "127.1", "localhost.example"])
    func refusesOtherAddressesThanLoopbackWithoutAuthentication(host: String) async throws {
        let service = try service(host)
        do {
            _ = try await service.start()
            Issue.record("it listens at \(host)")
        } catch let refusal as GatewayRefusal {
            #expect(refusal.description.contains("127.0.0.1:0"))
            #expect(refusal.description.contains("configure authentication"))
        }
    }

    @Test(arguments: ["127.0.0.1", "127.9.9.9", "localhost", "LOCALHOST"])
    func listensOnLoopbackWithoutAuthentication(host: String) async throws {
        let service = try service(host)
        let bound = try await service.start()
        #expect(bound.port != 0)
        await service.stop()
    }

    @Test func listensAnywhereWithAuthentication() async throws {
        let service = try service("0.0.0.0", authentication: Strict())
        let bound = try await service.start()
        #expect(bound.address == "0.0.0.0")
        await service.stop()
    }

    @Test func refusesPagesOfEveryOriginWithoutAuthentication() async throws {
        let open = try service("127.0.0.1", origins: ["*"])
        await #expect(throws: GatewayRefusal.reachableByEveryPage) { _ = try await open.start() }
        let named = try service("127.0.0.1", origins: ["https://app.example"])
        _ = try await named.start()
        await named.stop()
        let strict = try service("127.0.0.1", authentication: Strict(), origins: ["*"])
        _ = try await strict.start()
        await strict.stop()
    }

    private struct Strict: Authenticator {
        var trustsEveryCaller: Bool { false }

        func caller(of request: HTTPRequest) throws(Problem) -> CallerLookup { throw Problem(.unauthenticated, "no") }
    }

    @Test func stopsWithoutHavingStarted() async throws {
        await (try service("127.0.0.1")).stop()
    }

    @Test func stopWaitsForPendingOutcomes() async throws {
        try await withGateway { gateway in
            gateway.link.holdOutcomes()
            gateway.link.set(.results([], summary: BatchSummary(changeCount: 0)), ofPart: 0)
            let client = try HTTPClient(port: gateway.port)
            try await client.send(
                "POST", "/v1/sync", headers: TestGateway.headers(), body: Array(#"{"knowledgeId":"k1","batch":1}"#.utf8)
            )
            _ = await gateway.link.outcomesAsked.next()
            let watcher = try HTTPClient(port: gateway.port)
            try await watcher.send("GET", "/v1/watch", headers: TestGateway.headers())
            _ = try await watcher.head()
            async let stopped: Void = gateway.service.stop()
            // The stream ends at once, which shows that the stop has begun.
            #expect(try await watcher.restOfChunks().isComplete)
            #expect(throws: HTTPClient.Failure.self) { try HTTPClient(port: gateway.port) }
            gateway.link.releaseOutcomes()
            let answer = try await client.answer()
            #expect(answer.status == 200)
            #expect(answer.text.contains(#""batch":{"batch":1,"results":[]}"#))
            await stopped
            #expect(gateway.log.openProducers == 0)
        }
    }

    @Test func stopCancelsRequestsAfterItsPatience() async throws {
        try await withGateway {
            $0.patience = .zero
        } test: { gateway in
            gateway.link.holdOutcomes()
            let client = try HTTPClient(port: gateway.port)
            try await client.send(
                "POST", "/v1/sync", headers: TestGateway.headers(), body: Array(#"{"knowledgeId":"k1","batch":1}"#.utf8)
            )
            _ = await gateway.link.outcomesAsked.next()
            await gateway.service.stop()
            await #expect(throws: HTTPClient.Failure.self) { try await client.answer() }
            // Its task was cancelled, and ends.
            gateway.link.releaseOutcomes()
            await gateway.link.drained()
        }
    }

    @Test func logsStartAndStopAndFailedAppends() async throws {
        let lines = Lines()
        try await withGateway {
            $0.logger = Logger(label: "gateway", output: LogOutput(format: .text, to: lines), level: .info)
        } test: { gateway in
            gateway.log.fail(with: .init(.storageFull, message: "no room"))
            for _ in 1...3 { _ = try await gateway.exchange("POST", "/v1/upload", #"{"knowledgeId":"k1","batch":1}"#) }
            gateway.log.fail(with: nil)
            for _ in 1...2 { _ = try await gateway.exchange("POST", "/v1/upload", #"{"knowledgeId":"k1","batch":1}"#) }
        }
        let texts = lines.all
        #expect(texts.count == 4)
        #expect(texts.first?.contains("The gateway listens address=127.0.0.1:") == true)
        #expect(texts.dropFirst().first?.contains("Uploads cannot be appended error=\"no room\"") == true)
        #expect(texts.dropFirst(2).first?.contains("Uploads are appended again") == true)
        #expect(texts.last?.contains("The gateway has stopped") == true)
    }

    private final class Lines: LogSink {
        private let lines = Mutex<[String]>([])

        var all: [String] { lines.withLock { $0 } }

        func write(_ line: [UInt8]) { lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }
    }
}
