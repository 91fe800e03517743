import Foundation
import Seeded
import Testing

/// Devices of two owners in two partitions that write and read at the same time, through any number of servers' lives.
struct Fleet: Sendable {
    private var writers: [FaithfulDevice]
    private var reader: WatchfulDevice
    private var random: SeededRandom

    init(_ weir: WeirProcess, seed: UInt64) {
        writers = [
            FaithfulDevice(
                weir, syncID: "abc", knowledgeID: "k1", links: "def:write", owners: ["abc", "def"]),
            FaithfulDevice(weir, syncID: "abc", knowledgeID: "k2", owners: ["abc"]),
            FaithfulDevice(weir, syncID: "def", knowledgeID: "k3", owners: ["def"]),
        ]
        reader = WatchfulDevice(weir, syncID: "abc", knowledgeID: "k4", links: "def:read")
        random = SeededRandom(seed: seed)
    }

    /// How many batches the devices have sent.
    var batchCount: Int { writers.reduce(0) { $0 + $1.device.batch } }

    /// Plays on a server until it has ended.
    mutating func play(on weir: WeirProcess, until end: EndOfServer) async throws {
        let seeds = (0..<writers.count + 1).map { _ in random.next() }
        let reader = reader
        async let read = Self.play(reader, seeds[writers.count]) { (device, random) in
            try await device.read(from: weir, until: end, &random)
        }
        writers = try await withThrowingTaskGroup(of: (Int, FaithfulDevice).self) { group in
            for (place, writer) in writers.enumerated() {
                group.addTask {
                    let device = try await Self.play(writer, seeds[place]) { (device, random) in
                        try await device.write(to: weir, until: end, &random)
                    }
                    return (place, device)
                }
            }
            var played = writers
            for try await (place, device) in group { played[place] = device }
            return played
        }
        self.reader = try await read
    }

    private static func play<Device: Sendable>(
        _ device: Device, _ seed: UInt64,
        _ body: @Sendable (inout Device, inout SeededRandom) async throws -> Void
    ) async throws -> Device {
        var device = device
        var random = SeededRandom(seed: seed)
        try await body(&device, &random)
        return device
    }

    /// Everything that was unanswered is sent again; then every device holds what a new one gets, and the new one every
    /// batch exactly once.
    mutating func settle(on weir: WeirProcess) async throws {
        for place in writers.indices { try await writers[place].settle(on: weir) }
        var fresh = TestDevice(weir, syncID: "abc", knowledgeID: "k5", links: "def:read")
        try await fresh.drain(limit: 4)
        #expect(fresh.rows.count == writers.reduce(0) { $0 + $1.targets.count + 1 })
        for writer in writers {
            let name = writer.device.knowledgeID
            let own = fresh.rows.values.filter { $0["values"]["email"].string == name }
            #expect(own.count == writer.targets.count)
            for row in own {
                #expect(row["version"].int == writer.device.batch, "\(name)")
                #expect(row["values"]["name"].string == "\(writer.device.batch)", "\(name)")
            }
        }
        reader.device.client = DeviceClient(port: weir.port, headers: reader.device.client.headers)
        try await reader.device.drain(limit: 4)
        #expect(reader.device.rows == fresh.rows)
        // The other writers wrote after this one was drained.
        try await writers[0].device.drain(limit: 4)
        #expect(writers[0].device.visible == fresh.visible)
        #expect(writers[0].device.rows.mapValues { $0["timeStamp"] } == fresh.rows.mapValues { $0["timeStamp"] })
    }
}
