import Foundation
import SQLite
import Testing

/// The operations port of a running process.
@Suite(.timeLimit(.minutes(5))) struct OperationsTests {
    @Test func aRunningProcessIsAliveAndReady() async throws {
        let weir = try await TestServer.start()
        // The process logs its port earlier, when it listens.
        #expect(await weir.hasLogged("Weir is ready"))
        let operations = DeviceClient(port: try #require(weir.operationsPort), headers: [:])
        let health = try await operations.get("/healthz")
        #expect(health.status == 200)
        #expect(String(decoding: health.body, as: UTF8.self) == "{\"status\":\"alive\"}\n")
        let ready = try await operations.get("/readyz")
        #expect(ready.status == 200)
        #expect(String(decoding: ready.body, as: UTF8.self) == "{\"status\":\"ready\"}\n")
        #expect(await weir.stop() == 0)
        await #expect(throws: (any Error).self) { try await operations.get("/healthz") }
    }

    @Test func aProcessThatIsNotReadyReportsWhy() async throws {
        let first = try await TestServer.start()
        #expect(await first.stop() == 0)
        let folder = first.folder
        // While another process writes the log, it cannot be opened.
        let other = try Connection(path: folder.path + "/data/log.db", access: .readWriteCreate())
        try other.execute("BEGIN IMMEDIATE")
        let second = try await TestServer.start(in: folder) { port in
            let operations = DeviceClient(port: port, headers: [:])
            let ready = try await operations.get("/readyz")
            #expect(ready.status == 503)
            let reasons = try ready.json()["reasons"].object
            #expect(Set(reasons.keys) == ["storage", "streams", "gateway"])
            #expect(reasons["storage"]?.string == "the log and the tables are being opened")
            #expect(try await operations.get("/healthz").status == 200)
            let metrics = String(decoding: try await operations.get("/metrics").body, as: UTF8.self)
            #expect(metrics.contains("\nweir_ready 0\n"))
            try other.execute("ROLLBACK")
            try other.close()
        }
        #expect(await second.hasLogged("Weir is ready"))
        let operations = DeviceClient(port: try #require(second.operationsPort), headers: [:])
        #expect(try await operations.get("/readyz").status == 200)
        #expect(await second.stop() == 0)
    }

    @Test func theOperationsPortCanBeDisabled() async throws {
        let weir = try await TestServer.start(settings: ["operations.address": "off"])
        #expect(weir.operationsPort == nil)
        #expect(await weir.stop() == 0)
    }

    @Test func aPortInUseIsReportedBeforeAnythingIsOpened() async throws {
        let weir = try await TestServer.start()
        let port = try #require(weir.operationsPort)
        let folder = try TestFolder()
        try folder.write(TestServer.schema, to: "schema.yaml")
        let run = try await CommandRun.run(
            "run", "--schema", "schema.yaml", "--data", "data", "--operations.address",
            "127.0.0.1:\(port)", in: folder)
        #expect(run.code == 1)
        #expect(run.errors.contains("port \(port) of 127.0.0.1 is used by another process"))
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/data"))
        #expect(await weir.stop() == 0)
    }
}
