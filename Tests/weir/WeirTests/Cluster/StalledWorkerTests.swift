import ChangeLog
import Foundation
import Testing

/// An ordering worker is halted for longer than its session timeout, and continues after another has its partitions.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct StalledWorkerTests {
    /// A successor with a name of its own waits for the end of the stalled worker's session; one with that worker's name replaces it
    /// at once.
    @Test(arguments: ["ordering-2", "ordering-1"])
    func aStalledWorkerIsReplacedAndWritesNothingWhenItContinues(successor: String) async throws {
        try await Self.play(successor: successor) { _, worker, _ in
            worker.process.send(SIGSTOP)
            return Task {}
        }
    }

    /// The worker is halted while its transaction waits for a lock, after all or a part of it was sent.
    @Test(arguments: [10, 250_000])
    func aWorkerThatStallsInATransactionIsReplaced(valueBytes: Int) async throws {
        try await Self.play { cluster, worker, port in
            var written: Task<Void, any Error>?
            try await cluster.database.holding("LOCK TABLE person IN ACCESS EXCLUSIVE MODE") {
                written = Task {
                    try await Self.write(String(repeating: "x", count: valueBytes), port)
                    // So that what the halted worker would write later differs from the row.
                    try await Self.write("newer", port, batch: 2)
                }
                try await cluster.database.untilRow(
                    """
                    SELECT 1 FROM pg_stat_activity
                    WHERE application_name = 'weir' AND datname = current_database() AND wait_event_type = 'Lock'
                    """)
                worker.process.send(SIGSTOP)
            }
            return try #require(written)
        }
    }

    /// Writes three rows, and retries until they have their outcome.
    private static func write(_ value: String, _ port: UInt16, batch: Int = 1) async throws {
        var device = TestDevice(port: port, syncID: "abc", knowledgeID: "k2")
        let changes = (0..<3).map { TestDevice.change("large \($0)", ["name": JSON(value)]) }
        let answer = try await Retry.untilAnswered {
            device.batch = batch - 1
            return try await device.sync(changes)
        }
        #expect(TestDevice.verdicts(answer) == ["applied", "applied", "applied"])
        #expect(answer["batch"]["results"].array.map { $0["version"].int } == [batch, batch, batch])
    }

    /// Halts the only ordering worker, starts a successor, continues the first, and stops the successor.
    private static func play(
        successor name: String = "ordering-2",
        halt: (WeirCluster, ClusterMember, UInt16) async throws -> Task<Void, any Error>
    ) async throws {
        // A short delay, so that the halted worker retries before it learns that it was replaced.
        let cluster = try await WeirCluster.make(
            .init(partitions: 2, settings: ["ordering.retry-delay": "1ms"]))
        let members = try await cluster.startOneOfEach()
        let stalled = try #require(members.first { $0.role == .ordering })
        let port = members[0].port
        var device = CountingDevice(port: port)
        for _ in 0..<3 { try await device.write() }
        let written = try await halt(cluster, stalled, port)
        let successor = try await cluster.start(
            .ordering, named: "successor", ["--kafka.instance-name", name])
        try await written.value
        for _ in 0..<3 { try await device.write() }
        stalled.process.send(SIGCONT)
        for _ in 0..<3 { try await device.write() }
        await successor.stop()
        for _ in 0..<3 { try await device.write() }
        let fresh = try await device.drained()
        for member in members.reversed() { await member.stop() }
        try await cluster.expectRows(fresh)
        let audit = try await LogAudit.check(cluster)
        try await cluster.expectPositions(audit)
    }
}
