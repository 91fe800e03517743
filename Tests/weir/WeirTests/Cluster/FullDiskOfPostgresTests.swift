import AsyncPrimitives
import ChangeLog
import Foundation
import PostgresServer
import Seeded
import Testing

/// The database's disk is full: acknowledged batches wait in the log until there is space.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"),
    .enabled(if: SmallDisk.isPossible, "\(SmallDisk.skipReason)"))
struct FullDiskOfPostgresTests {
    @Test func orderingWaitsForADatabaseWithoutSpace() async throws {
        let postgres = try await PostgresServer.start()
        let owner = getpwnam("postgres").map { $0.pointee.pw_uid } ?? 0
        let disk = try SmallDisk(megabytes: 48, owner: owner)
        let result = await Result.capturing { try await Self.play(postgres, disk) }
        await postgres.end()
        try disk.end()
        try result.get()
    }

    private static func play(_ postgres: PostgresServer, _ disk: SmallDisk) async throws {
        let admin = TestDatabase(server: postgres, name: "postgres")
        try await admin.execute("CREATE TABLESPACE small LOCATION '\(disk.path)'")
        try await admin.execute("CREATE DATABASE weir TEMPLATE template0 TABLESPACE small")
        let cluster = try await WeirCluster.make(
            .init(partitions: 2, database: TestDatabase(server: postgres, name: "weir")))
        let members = try await cluster.startOneOfEach()
        let ordering = try #require(members.first { $0.role == .ordering })
        let port = members[0].port
        var device = CountingDevice(port: port)
        try await device.write()
        try disk.fill()
        // So large, and so hard to compress, that the table must grow.
        var random = SeededRandom(seed: 1)
        let values = (0..<3).map { _ in
            String((0..<200_000).map { _ in "abcdefghijklmnopqrstuvwxyz".randomElement(using: &random) ?? "a" })
        }
        async let written: Void = Self.write(values, port)
        await ordering.expectLogged("No space left on device")
        try await ordering.untilUnready("No space left on device")
        try disk.freeSpace()
        try await written
        try await ordering.untilReadyAgain()
        try await device.write()
        let fresh = try await device.drained()
        for member in members.reversed() { await member.stop() }
        try await cluster.expectRows(fresh)
        #expect(fresh.rows.count == 7)
    }

    private static func write(_ values: [String], _ port: UInt16) async throws {
        var device = TestDevice(port: port, syncID: "abc", knowledgeID: "k2")
        let changes = values.enumerated().map { TestDevice.change("large \($0)", ["name": JSON($1)]) }
        let answer = try await Retry.untilAnswered {
            device.batch = 0
            return try await device.sync(changes)
        }
        #expect(answer["batch"]["results"].array.map { $0["version"].int } == [1, 1, 1])
    }
}
