import Foundation
import Testing

/// Processes whose names the brokers know; their sessions outlast the tests, so that nothing waits for one to expire.
@Suite(
    .timeLimit(.minutes(4)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct NamedProcessTests {
    private static let longSession = ["--kafka.session-timeout", "300s"]

    @Test func aKilledProcessHasItsPartitionsBackAndInterruptsNoOther() async throws {
        let cluster = try await WeirCluster.make()
        let members = try await cluster.startTwoOfEach(Self.longSession)
        var device = CountingDevice(port: members[0].port)
        try await device.write()
        for role in [ClusterMember.Role.ordering, .ingest] {
            let pair = members.filter { $0.role == role }
            try await Self.untilShared(pair, cluster.partitions)
            for (killed, other) in [(pair[0], pair[1]), (pair[1], pair[0])] {
                let (held, line) = (try killed.partitions(), other.process.log.count)
                await killed.kill()
                try killed.startAgain()
                await killed.expectLogged("Partitions assigned")
                #expect(try killed.partitions() == held, "\(role)")
                try await device.write()
                #expect(!other.process.log.dropFirst(line).contains { $0.contains("Partitions ") }, "\(role)")
            }
        }
        let fresh = try await device.drained()
        for member in members.reversed() { await member.stop() }
        try await cluster.expectRows(fresh)
    }

    @Test func aStoppedProcessHandsOverAtOnce() async throws {
        let cluster = try await WeirCluster.make()
        let members = try await cluster.startTwoOfEach(Self.longSession)
        var device = CountingDevice(port: members[0].port)
        for role in [ClusterMember.Role.ordering, .ingest] {
            let pair = members.filter { $0.role == role }
            try await Self.untilShared(pair, cluster.partitions)
            await pair[0].stop()
            try await Self.untilHeld(pair[1], cluster.partitions)
            try await device.write()
            try pair[0].startAgain()
            try await Self.untilShared(pair, cluster.partitions)
            try await device.write()
        }
        for member in members.reversed() { await member.stop() }
    }

    /// The first process of a name reports the second one, and both work.
    @Test func twoProcessesOfOneNameDoNotReplaceEachOtherInTurns() async throws {
        let cluster = try await WeirCluster.make()
        let members = try await cluster.startOneOfEach()
        var device = CountingDevice(port: members[0].port)
        try await device.write()
        for role in [ClusterMember.Role.ordering, .ingest] {
            let first = try #require(members.first { $0.role == role })
            let second = try await cluster.start(
                role, named: "second \(role)", ["--kafka.instance-name", "\(role)-1"])
            await first.expectLogged("give each process of a role its own kafka.instance-name")
            try await Self.untilShared([first, second], cluster.partitions)
            try await device.write()
            try await first.untilReadyAgain()
            #expect(second.process.log.allSatisfy { !$0.contains("kafka.instance-name") })
            #expect(first.process.log.count { $0.contains("kafka.instance-name") } == 1)
            await second.stop()
            try await device.write()
        }
        for member in members.reversed() { await member.stop() }
    }

    /// Waits until two processes have half of the partitions each.
    private static func untilShared(_ pair: [ClusterMember], _ partitions: Int) async throws {
        for member in pair { try await untilHeld(member, partitions / 2) }
    }

    private static func untilHeld(_ member: ClusterMember, _ count: Int) async throws {
        while try member.partitions().count != count {
            let line = member.process.log.count
            if try member.partitions().count == count { return }
            guard await member.process.hasLogged("Partitions ", after: line) else {
                throw StartFailure(description: "\(member.role) has ended: \(member.process.log.suffix(5))")
            }
        }
    }
}

extension ClusterMember {
    /// The partitions that the process has by its log.
    fileprivate func partitions() throws -> Set<Int> {
        var held: Set<Int> = []
        for line in process.log where line.contains("\"Partitions ") {
            let json = JSON(try JSONSerialization.jsonObject(with: Data(line.utf8)))
            let partitions = (json["partition"].string ?? "").split(separator: ",").compactMap { Int($0) }
            if json["message"].string == "Partitions assigned" {
                held.formUnion(partitions)
            } else {
                held.subtract(partitions)
            }
        }
        return held
    }
}
