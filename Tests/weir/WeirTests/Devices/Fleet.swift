import AsyncPrimitives
import ChangeLog
import Foundation
import Seeded
import Testing

/// Devices of several owners that write and read at the same time, through any gateway that runs, and repeat what got no answer.
struct Fleet: Sendable {
    private let gateways: Gateways
    private let progress = Progress()
    private let owners: [String]
    private var writers: [CountingDevice]
    private var readers: [TestDevice]
    private var random: SeededRandom

    /// One device for each owner, and a second one for the first owner; every other owner's device writes the next owner's rows,
    /// too.
    init(_ gateways: Gateways, owners count: Int, seed: UInt64) {
        self.gateways = gateways
        let owners = (1...count).map { "owner \($0)" }
        self.owners = owners
        random = SeededRandom(seed: seed)
        writers = owners.enumerated().map { index, owner in
            let next = owners[(index + 1) % count]
            guard index % 2 == 0 else {
                return CountingDevice(port: 0, syncID: owner, knowledgeID: "k\(index)", owners: [owner])
            }
            return CountingDevice(
                port: 0, syncID: owner, knowledgeID: "k\(index)", links: Self.links(to: [next], "write"),
                owners: [owner, next])
        }
        writers.append(CountingDevice(port: 0, syncID: owners[0], knowledgeID: "k\(count)", owners: [owners[0]]))
        readers = []
        readers = (0..<2).map { reader(named: "reader \($0)") }
    }

    /// How many batches the devices have sent.
    var batchCount: Int { writers.reduce(0) { $0 + $1.device.batch } }

    private static func links(to owners: some Sequence<String>, _ access: String) -> String {
        owners.map { $0.replacing(" ", with: "%20") + ":" + access }.joined(separator: ",")
    }

    /// A device that may read everything.
    private func reader(named name: String) -> TestDevice {
        TestDevice(
            port: 0, syncID: owners[0], knowledgeID: name, links: Self.links(to: owners.dropFirst(), "read"))
    }

    /// Plays while a body runs, at whose end a gateway must run; the body can wait for requests and answers.
    mutating func play<Value: Sendable>(
        during body: @Sendable (Progress) async throws -> Value
    ) async throws -> Value {
        let flag = StopFlag()
        let (gateways, progress) = (gateways, progress)
        let seeds = (0..<writers.count + readers.count).map { _ in random.next() }
        let (playingWriters, playingReaders) = (writers, readers)
        async let written = Self.play(playingWriters, seeds, flag, gateways, progress) { (device, port, random) in
            device.device.move(to: port)
            progress.record()
            try await device.play(&random)
            progress.record()
        }
        async let read = Self.play(playingReaders, Array(seeds.dropFirst(writers.count)), flag, gateways, progress) {
            (device, port, random) in
            device.move(to: port)
            try await Self.pullPage(&device, &random)
        }
        let result = await Result.capturing { try await body(progress) }
        flag.set()
        (writers, readers) = try await (written, read)
        return try result.get()
    }

    /// Repeats what got no answer; then every device must hold what a new one gets, and the new one every batch once.
    ///
    /// - Returns: the new device.
    @discardableResult
    mutating func settle() async throws -> TestDevice {
        for index in writers.indices {
            writers[index] = try await settled(writers[index]) { (device, port) in
                device.device.move(to: port)
                try await device.settle()
            }
        }
        let fresh = try await drained(reader(named: "fresh"))
        #expect(fresh.rows.count == writers.reduce(0) { $0 + $1.targets.count + 1 })
        for writer in writers {
            writer.expectEveryBatchOnce(in: fresh)
            // The other writers wrote after this one was drained.
            let drained = try await drained(writer.device)
            let granted = Set([drained.client.headers["X-Sync-Id"] ?? ""] + writer.targets.map(\.owner))
            let expected = fresh.rows.filter { granted.contains($0.value["syncId"].string ?? "") }
            #expect(
                drained.rows.mapValues(Self.knownToWriters) == expected.mapValues(Self.knownToWriters),
                "\(writer.device.knowledgeID)")
        }
        for reader in readers {
            let drained = try await drained(reader)
            #expect(drained.rows == fresh.rows, "\(reader.knowledgeID)")
        }
        return fresh
    }

    /// What a device that wrote a row itself knows of it, as well as any other.
    private static func knownToWriters(_ row: JSON) -> JSON {
        [
            "timeStamp": row["timeStamp"], "version": row["version"], "deleted": row["deleted"],
            "name": row["values"]["name"], "email": row["values"]["email"],
        ]
    }

    private func drained(_ device: TestDevice) async throws -> TestDevice {
        try await settled(device) { (device, port) in
            device.move(to: port)
            try await device.drain(limit: 9)
        }
    }

    /// The device after a request that may be repeated, and was until it succeeded.
    private func settled<Device: Sendable>(
        _ device: Device, _ body: @Sendable (inout Device, UInt16) async throws -> Void
    ) async throws -> Device {
        var device = device
        var random = random
        try await Retry.untilAnswered { try await body(&device, await gateways.any(&random)) }
        return device
    }

    /// Pulls a page, and expects no row to go back.
    private static func pullPage(_ device: inout TestDevice, _ random: inout SeededRandom) async throws {
        let before = device.rows
        _ = try await device.sync(limit: Int.random(in: 1...30, using: &random))
        for (key, row) in device.rows {
            #expect(row["version"].int ?? 0 >= before[key]?["version"].int ?? 0, "\(key) went back")
            #expect(row["timeStamp"].int ?? 0 >= before[key]?["timeStamp"].int ?? 0, "\(key) went back")
        }
    }

    private static func play<Device: Sendable>(
        _ devices: [Device], _ seeds: [UInt64], _ flag: StopFlag, _ gateways: Gateways, _ progress: Progress,
        _ step: @escaping @Sendable (inout Device, UInt16, inout SeededRandom) async throws -> Void
    ) async throws -> [Device] {
        try await withThrowingTaskGroup(of: (Int, Device).self) { group in
            for (index, device) in devices.enumerated() {
                group.addTask {
                    var device = device
                    var random = SeededRandom(seed: seeds[index])
                    while !flag.isSet {
                        let port = await gateways.any(&random)
                        do {
                            try await step(&device, port, &random)
                        } catch let failure as DeviceClient.Failure where Retry.applies(to: failure) {
                            try await Retry.pause()
                        } catch {
                            // The others would play, and the test wait, forever.
                            flag.set()
                            progress.fail(error)
                            throw error
                        }
                    }
                    return (index, device)
                }
            }
            var played = devices
            for try await (index, device) in group { played[index] = device }
            return played
        }
    }
}
