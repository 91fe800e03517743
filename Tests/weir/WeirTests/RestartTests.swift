import Foundation
import Fuzzing
import Seeded
import Testing

/// A restart loses nothing, and missing or damaged streams are rebuilt.
@Suite struct RestartTests {
    private func person(_ id: String, _ name: String) -> JSON { TestDevice.change(id, ["name": JSON(name)]) }

    @Test func aCleanRestartAtAnyPointLosesNothing() async throws {
        let folder = try TestFolder()
        var knowledge: [JSON] = []
        var rows: [String: JSON] = [:]
        var epoch: String?
        for round in 1...4 {
            let weir = try await TestServer.start(in: folder)
            let client = DeviceClient(port: weir.port, syncID: "abc")
            // Durable, without an outcome: the process is stopped immediately.
            let request: JSON = [
                "knowledgeId": "k1", "batch": JSON(round),
                "changes": JSON((0..<50).map { person("p\($0)", "round \(round)").value }),
            ]
            let accepted = try await client.post("/v1/upload", request)
            #expect(accepted.status == 202)
            #expect(await weir.stop() == 0)

            let next = try await TestServer.start(in: folder)
            var reader = TestDevice(next, syncID: "abc", knowledgeID: "k2")
            reader.knowledge = knowledge
            reader.rows = rows
            let pull = try await reader.client.sync(
                ["knowledgeId": "k1", "include": [JSON(round)], "limit": 1], to: "/v1/pull")
            if let epoch { #expect(pull["epoch"].string == epoch) }
            epoch = pull["epoch"].string
            try await reader.drain(limit: 20)
            #expect(reader.visible.count == 50)
            #expect(reader.visible.values.allSatisfy { $0["name"].string == "round \(round)" })
            let again = try await DeviceClient(port: next.port, syncID: "abc").sync(request)
            #expect(again["batch"]["results"].array.count == 50)
            #expect(again["batch"]["results"][0]["version"].int == round)
            (knowledge, rows) = (reader.knowledge, reader.rows)
            #expect(await next.stop() == 0)
        }
    }

    @Test func deletedStreamsAreRebuilt() async throws {
        let folder = try TestFolder()
        let device = try await Self.fill(folder)
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path + "/data")
        where name.hasPrefix("fanout-") {
            try FileManager.default.removeItem(atPath: folder.path + "/data/" + name)
        }
        try await Self.check(folder, device)
    }

    @Test(arguments: TestLength.seeds(3, short: 1, long: 50)) func streamsWithFlippedBytesAreNoticedAndRebuilt(
        seed: UInt64
    )
        async throws
    {
        let folder = try TestFolder()
        let device = try await Self.fill(folder)
        var random = SeededRandom(seed: seed)
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path + "/data")
        where name.hasPrefix("fanout-") && name.hasSuffix(".db") {
            let path = URL(fileURLWithPath: folder.path + "/data/" + name)
            var bytes = try Data(contentsOf: path)
            for _ in 0..<20 {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                bytes[index] ^= UInt8(1) << UInt8.random(in: 0..<8, using: &random)
            }
            try bytes.write(to: path)
        }
        try await Self.check(folder, device)
    }

    /// A server with rows of two owners, stopped; the device that holds all of them.
    private static func fill(_ folder: TestFolder) async throws -> TestDevice {
        let weir = try await TestServer.start(in: folder)
        var device = TestDevice(weir, syncID: "abc", knowledgeID: "k1", links: "def:write")
        for round in 0..<3 {
            _ = try await device.sync(
                (0..<100).map { number in
                    let change = TestDevice.change("p\(number)", ["name": JSON("\(round) \(number)"), "email": "e"])
                    return number % 2 == 0 ? change : change.with("syncId", "def")
                })
        }
        #expect(await weir.stop() == 0)
        return device
    }

    /// A new device gets exactly the rows, the old one nothing, and outcomes are still known.
    private static func check(_ folder: TestFolder, _ device: TestDevice) async throws {
        let weir = try await TestServer.start(in: folder)
        var fresh = TestDevice(weir, syncID: "abc", knowledgeID: "k2", links: "def:write")
        try await fresh.drain(limit: 30)
        #expect(fresh.visible == device.visible)
        #expect(fresh.rows.mapValues { $0["timeStamp"] } == device.rows.mapValues { $0["timeStamp"] })
        let pull = try await fresh.client.sync(
            ["knowledgeId": "k1", "knowledge": JSON(device.knowledge.map(\.value))], to: "/v1/pull")
        #expect(pull["changes"].array.isEmpty)
        #expect(try await fresh.client.get("/v1/batches/3?knowledgeId=k1").status == 200)
        #expect(await weir.stop() == 0)
    }
}
