import Foundation
import Testing

/// The operations port of a running process.
@Suite(.timeLimit(.minutes(2))) struct OperationsTests {
    @Test func aRunningProcessLivesAndIsReady() async throws {
        let weir = try await TestServer.start()
        let operations = DeviceClient(port: try #require(try weir.operationsPort), headers: [:])
        let health = try await operations.get("/healthz")
        #expect(health.status == 200)
        #expect(String(decoding: health.body, as: UTF8.self) == "{\"status\":\"alive\"}\n")
        let ready = try await operations.get("/readyz")
        #expect(ready.status == 200)
        #expect(String(decoding: ready.body, as: UTF8.self) == "{\"status\":\"ready\"}\n")
        #expect(await weir.stop() == 0)
        await #expect(throws: (any Error).self) { try await operations.get("/healthz") }
    }

    @Test func thePortCanBeSwitchedOff() async throws {
        let weir = try await TestServer.start(settings: ["operations.address": "off"])
        #expect(try weir.operationsPort == nil)
        #expect(await weir.stop() == 0)
    }

    @Test func aTakenPortIsNamedBeforeAnythingIsOpened() async throws {
        let weir = try await TestServer.start()
        let port = try #require(try weir.operationsPort)
        let folder = try TestFolder()
        try folder.write(TestServer.schema, to: "schema.yaml")
        let run = try await CommandRun.run(
            "run", "--schema", "schema.yaml", "--data", "data", "--operations.address",
            "127.0.0.1:\(port)", in: folder)
        #expect(run.code == 1)
        #expect(run.errors.contains("port \(port) at 127.0.0.1 is taken by another process"))
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/data"))
        #expect(await weir.stop() == 0)
    }
}

extension WeirProcess {
    /// The port of `/metrics`, which the process logs when it listens there; `nil` where it does not.
    var operationsPort: UInt16? {
        get throws {
            let url = try log.lazy.compactMap { try JSON.line($0)["url"].string }.first
            return url.flatMap { URL(string: $0)?.port }.map { UInt16($0) }
        }
    }
}
