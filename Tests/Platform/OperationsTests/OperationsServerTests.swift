import Configuration
import Metrics
import Operations
import ServiceLifecycle
import TestClocks
import Testing

/// What the port answers.
@Suite(.timeLimit(.minutes(5))) struct OperationsServerTests {
    private let metrics = MetricRegistry()
    private let readiness = Readiness()

    private func start(_ liveness: Liveness = Liveness()) throws -> (server: OperationsServer, port: UInt16) {
        let server = OperationsServer(
            address: try #require(NetworkAddress(host: "127.0.0.1", port: 0)), metrics: metrics, readiness: readiness,
            liveness: liveness)
        let address = "\(try server.start())"
        return (server, try #require(address.split(separator: ":").last.flatMap { UInt16($0) }))
    }

    @Test func servesMetricsAsPrometheusText() async throws {
        metrics.counter(.gatewayUploads).add(7)
        let (server, port) = try start()
        let answer = try await PlainClient.ask("GET", "/metrics", port: port)
        #expect(answer.status == 200)
        #expect(answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
        #expect(answer.body.hasSuffix("\nweir_gateway_uploads_total 7\n"))
        await server.stop()
    }

    @Test func readinessNamesWhatIsNotReady() async throws {
        let first = readiness.addCondition("storage", unready: "the \"log\" is being opened")
        let second = readiness.addCondition("streams", unready: "partition 3 is being rebuilt")
        let (server, port) = try start()
        var answer = try await PlainClient.ask("GET", "/readyz", port: port)
        #expect(answer.status == 503)
        #expect(
            answer.body == """
                {"status":"not ready","reasons":{"storage":"the \\"log\\" is being opened",\
                "streams":"partition 3 is being rebuilt"}}

                """)
        first.setReady()
        second.setReady()
        answer = try await PlainClient.ask("GET", "/readyz", port: port)
        #expect(answer.status == 200)
        #expect(answer.body == "{\"status\":\"ready\"}\n")
        second.setUnready("partition 3 is damaged")
        answer = try await PlainClient.ask("GET", "/readyz", port: port)
        #expect(answer.status == 503)
        #expect(answer.body.contains("{\"streams\":\"partition 3 is damaged\"}"))
        await server.stop()
    }

    @Test func aStuckThreadIsReportedUntilItResponds() async throws {
        let clock = ManualClock()
        let (beats, asked) = AsyncStream.makeStream(of: CheckedContinuation<Void, Never>.self)
        var incoming = beats.makeAsyncIterator()
        let liveness = Liveness(tasks: Watchdog("tasks", limit: .seconds(30), clock: clock) {})
        let (answered, answer) = AsyncStream.makeStream(of: Void.self)
        var answers = answered.makeAsyncIterator()
        liveness.add(
            Watchdog("log", limit: .seconds(30), clock: clock) {
                await withCheckedContinuation { asked.yield($0) }
                answer.yield()
            })
        let (server, port) = try start(liveness)
        #expect(try await PlainClient.ask("GET", "/healthz", port: port).body == "{\"status\":\"alive\"}\n")
        let beat = await incoming.next()
        clock.advance(by: .seconds(30))
        #expect(try await PlainClient.ask("GET", "/healthz", port: port).status == 200)
        clock.advance(by: .seconds(1))
        let stalled = try await PlainClient.ask("GET", "/healthz", port: port)
        #expect(stalled.status == 503)
        #expect(stalled.body.contains("\"log\":\"no response for 31 seconds\""))
        beat?.resume()
        _ = await answers.next()
        // The beat is noted right behind its end; the next look finds it and asks for another.
        while try await PlainClient.ask("GET", "/healthz", port: port).status != 200 {}
        let next = await incoming.next()
        #expect(try await PlainClient.ask("GET", "/healthz", port: port).status == 200)
        next?.resume()
        await server.stop()
    }

    @Test(arguments: [
        ("GET", "/", 404), ("GET", "/metrics/x", 404), ("POST", "/metrics", 405), ("PUT", "/readyz", 405),
    ])
    func whatItDoesNotServeIsRefused(method: String, path: String, status: Int) async throws {
        let (server, port) = try start()
        #expect(try await PlainClient.ask(method, path, port: port).status == status)
        await server.stop()
    }

    @Test func reportsAnAddressInUse() async throws {
        let (server, port) = try start()
        let second = OperationsServer(
            address: try #require(NetworkAddress("127.0.0.1:\(port)")), metrics: metrics, readiness: readiness,
            liveness: Liveness())
        let error = #expect(throws: OperationsStartError.self) { try second.start() }
        #expect(error?.description.contains("port \(port) of 127.0.0.1 is used") == true)
        #expect(error?.description.contains("operations.address") == true)
        await server.stop()
    }
}
