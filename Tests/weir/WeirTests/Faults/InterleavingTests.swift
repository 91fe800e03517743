import Foundation
import Fuzzing
import Seeded
import Testing

/// Random requests of devices, restarts and kills, on real files and over HTTP.
@Suite(.timeLimit(.minutes(10))) struct InterleavingTests {
    @Test(arguments: TestLength.seeds(3, short: 1, long: 60))
    func drainedDevicesEqualTheServerAndItsLogReplaysToTheSame(seed: UInt64) async throws {
        let folder = try TestFolder()
        var random = SeededRandom(seed: seed)
        var weir = try await TestServer.start(in: folder)
        var devices = [
            RandomDevice(weir, syncID: "abc", knowledgeID: "k1", links: "def:write", owners: ["abc", "def"]),
            RandomDevice(weir, syncID: "abc", knowledgeID: "k2", links: "def:read", owners: ["abc"]),
            RandomDevice(weir, syncID: "def", knowledgeID: "k3", links: "abc:write", owners: ["def", "abc"]),
            RandomDevice(weir, syncID: "def", knowledgeID: "k4", links: "abc:read", owners: []),
        ]
        for _ in 0..<60 {
            let index = Int.random(in: 0..<devices.count, using: &random)
            if Int.random(in: 0..<15, using: &random) > 0 {
                try await devices[index].play(&random)
                continue
            }
            let isClean = Bool.random(using: &random)
            if index == 3 || Bool.random(using: &random) {
                _ = isClean ? await weir.stop() : await weir.kill()
            } else {
                try await devices[index].playAtTheEnd(of: weir, isClean: isClean, &random)
            }
            weir = try await TestServer.start(in: folder)
            for index in devices.indices { devices[index].device.move(to: weir.port) }
        }
        for index in devices.indices { try await devices[index].settle(&random) }
        let marks = try await Self.mark(weir)
        let server = try await Self.newDevice(weir)
        for index in devices.indices {
            try await devices[index].device.drain(limit: 7)
            let device = devices[index].device
            #expect(device.visible == server.visible, "\(device.knowledgeID)")
            #expect(Self.timeStamps(device) == Self.timeStamps(server), "\(device.knowledgeID)")
        }
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)

        // Only the log is kept.
        let tables = try TablesDump.read(folder)
        #expect(tables.count > 20)
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path + "/data")
        where name.hasPrefix("tables.db") || name.hasPrefix("fanout-") {
            try FileManager.default.removeItem(atPath: folder.path + "/data/" + name)
        }
        weir = try await TestServer.start(in: folder)
        // Repeats change nothing, and are ordered after everything else.
        #expect(try await Self.mark(weir) == marks)
        let replayed = try await Self.newDevice(weir)
        #expect(replayed.rows == server.rows)
        #expect(await weir.stop() == 0)
        #expect(try TablesDump.read(folder) == tables)
    }

    /// Writes a row of each owner, or repeats that; returns once everything before it is ordered.
    private static func mark(_ weir: WeirProcess) async throws -> [JSON] {
        var results: [JSON] = []
        for caller in ["abc", "def"] {
            let change = TestDevice.change("mark", ["name": "mark"])
            let answer = try await DeviceClient(port: weir.port, syncID: caller).sync([
                "knowledgeId": "marker", "batch": 1, "changes": JSON([change.value]),
            ])
            results.append(answer["batch"]["results"])
        }
        return results
    }

    /// A device that holds everything.
    private static func newDevice(_ weir: WeirProcess) async throws -> TestDevice {
        var device = TestDevice(weir, syncID: "abc", knowledgeID: "new", links: "def:read")
        try await device.drain(limit: 9)
        return device
    }

    /// The timeStamps of the rows that are not deleted.
    private static func timeStamps(_ device: TestDevice) -> [String: JSON] {
        device.rows.filter { $0.value["deleted"].bool != true }.mapValues { $0["timeStamp"] }
    }
}
