import ChangeLog
import Foundation
import Seeded
import Testing

/// Devices of several owners that write and read through whatever gateway is there, and repeat what got no answer.
struct ClusterFleet: Sendable {
    private static let owners = (1...8).map { "owner \($0)" }

    let progress = Progress()
    private let gateways: Gateways
    private var writers: [FaithfulDevice]
    private var readers: [TestDevice]
    private var random: SeededRandom

    init(_ cluster: WeirCluster, seed: UInt64) {
        gateways = cluster.gateways
        random = SeededRandom(seed: seed)
        let owners = Self.owners
        writers = owners.enumerated().map { place, owner in
            // Every other device writes rows of another owner, too, who may live in another partition.
            let other = owners[(place + 1) % owners.count]
            let isLinked = place % 2 == 0
            return FaithfulDevice(
                port: 0, syncID: owner, knowledgeID: "k\(place)",
                links: isLinked ? Self.links(to: [other], "write") : nil, owners: isLinked ? [owner, other] : [owner])
        }
        readers = (0..<2).map { Self.reader(named: "reader \($0)") }
    }

    /// How many batches the devices have sent.
    var batchCount: Int { writers.reduce(0) { $0 + $1.device.batch } }

    private static func links(to owners: [String], _ access: String) -> String {
        owners.map { $0.replacing(" ", with: "%20") + ":" + access }.joined(separator: ",")
    }

    /// A device that may read everything.
    private static func reader(named name: String) -> TestDevice {
        TestDevice(
            port: 0, syncID: owners[0], knowledgeID: name, links: links(to: Array(owners.dropFirst()), "read"))
    }

    /// Plays for as long as a body runs, which is told of answers to writers.
    mutating func play(during body: @Sendable (Progress) async throws -> Void) async throws {
        let flag = StopFlag()
        let (gateways, progress) = (gateways, progress)
        let seeds = (0..<writers.count + readers.count).map { _ in random.next() }
        let (playingWriters, playingReaders) = (writers, readers)
        async let written = Self.play(playingWriters, seeds, flag, gateways) {
            (device, port, random) in
            device.device.turn(to: port)
            try await device.play(&random)
            progress.note()
        }
        async let read = Self.play(playingReaders, Array(seeds.dropFirst(writers.count)), flag, gateways) {
            (device, port, random) in
            device.turn(to: port)
            try await Self.look(&device, &random)
        }
        let result = await Result.capturing { try await body(progress) }
        flag.set()
        (writers, readers) = try await (written, read)
        try result.get()
    }

    /// Everything that was unanswered is sent again; then every device holds what a new one gets, and that one every batch once.
    ///
    /// The new one comes back.
    mutating func settle() async throws -> TestDevice {
        for place in writers.indices {
            writers[place] = try await settled(writers[place]) { (device, port) in
                device.device.turn(to: port)
                try await device.settle()
            }
        }
        let fresh = try await drained(Self.reader(named: "fresh"))
        #expect(fresh.rows.count == writers.reduce(0) { $0 + $1.targets.count + 1 })
        for place in writers.indices {
            let writer = writers[place]
            let name = writer.device.knowledgeID
            let own = fresh.rows.values.filter { $0["values"]["email"].string == name }
            #expect(own.count == writer.targets.count)
            for row in own {
                #expect(row["version"].int == writer.device.batch, "\(name)")
                #expect(row["values"]["name"].string == "\(writer.device.batch)", "\(name)")
            }
            // The other writers wrote after this one was drained.
            let drained = try await drained(writer.device)
            let granted = Set([drained.client.headers["X-Sync-Id"] ?? ""] + writer.targets.map(\.owner))
            let expected = fresh.rows.filter { granted.contains($0.value["syncId"].string ?? "") }
            #expect(drained.rows.mapValues(Self.known) == expected.mapValues(Self.known), "\(name)")
        }
        for reader in readers {
            let drained = try await drained(reader)
            #expect(drained.rows == fresh.rows, "\(reader.knowledgeID)")
        }
        return fresh
    }

    /// What a device that wrote a row itself knows of it, as well as any other.
    private static func known(_ row: JSON) -> JSON {
        [
            "timeStamp": row["timeStamp"], "version": row["version"], "deleted": row["deleted"],
            "name": row["values"]["name"], "email": row["values"]["email"],
        ]
    }

    private func drained(_ device: TestDevice) async throws -> TestDevice {
        try await settled(device) { (device, port) in
            device.turn(to: port)
            try await device.drain(limit: 9)
        }
    }

    /// Does something that may be repeated, until nothing that passes stands in the way.
    private func settled<Device: Sendable>(
        _ device: Device, _ body: @Sendable (inout Device, UInt16) async throws -> Void
    ) async throws -> Device {
        var device = device
        var random = random
        while true {
            do {
                try await body(&device, await gateways.any(&random))
                return device
            } catch let failure as DeviceClient.Failure where Patience.covers(failure) {
                try await Patience.rest()
            }
        }
    }

    /// Pulls a page, and sees no row go back.
    private static func look(_ device: inout TestDevice, _ random: inout SeededRandom) async throws {
        let before = device.rows
        _ = try await device.sync(limit: Int.random(in: 1...30, using: &random))
        for (key, row) in device.rows {
            #expect(row["version"].int ?? 0 >= before[key]?["version"].int ?? 0, "\(key) went back")
            #expect(row["timeStamp"].int ?? 0 >= before[key]?["timeStamp"].int ?? 0, "\(key) went back")
        }
    }

    private static func play<Device: Sendable>(
        _ devices: [Device], _ seeds: [UInt64], _ flag: StopFlag, _ gateways: Gateways,
        _ step: @escaping @Sendable (inout Device, UInt16, inout SeededRandom) async throws -> Void
    ) async throws -> [Device] {
        try await withThrowingTaskGroup(of: (Int, Device).self) { group in
            for (place, device) in devices.enumerated() {
                group.addTask {
                    var device = device
                    var random = SeededRandom(seed: seeds[place])
                    while !flag.isSet {
                        let port = await gateways.any(&random)
                        do {
                            try await step(&device, port, &random)
                        } catch let failure as DeviceClient.Failure where Patience.covers(failure) {
                            try await Patience.rest()
                        }
                    }
                    return (place, device)
                }
            }
            var played = devices
            for try await (place, device) in group { played[place] = device }
            return played
        }
    }
}
