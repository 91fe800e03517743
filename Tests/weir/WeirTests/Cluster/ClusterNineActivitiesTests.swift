import Foundation
import Testing

/// The simulation of the netcoresync seed through separate processes on Kafka and Postgres.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct ClusterNineActivitiesTests {
    @Test func theNineActivitiesGiveTheSeedsNumbersThroughSeparateProcesses() async throws {
        try await Self.play(try NineActivities.standard())
    }

    @Test func theAlternateOfActivitySixGivesTheSeedsNumbersThroughSeparateProcesses() async throws {
        try await Self.play(try NineActivities.alternate())
    }

    private static func play(_ activities: NineActivities) async throws {
        let schema = try String(contentsOfFile: activities.schema, encoding: .utf8)
        let cluster = try await WeirCluster.make(
            .init(partitions: activities.partitions, clock: activities.clock, schema: schema))
        let members = try await cluster.startOneOfEach()
        let port = members[0].port
        try await activities.play {
            port
        } rows: { newest in
            // The tables are written after the answers; rows and position in one transaction.
            try await cluster.database.untilRow("SELECT 1 FROM weir_partitions WHERE time_stamp >= \(newest)")
            return try await Self.rows(cluster.database)
        }
        for member in members.reversed() { await member.stop() }
    }

    /// The server's rows, as its tables have them.
    private static func rows(_ database: TestDatabase) async throws -> [JSON] {
        try await database.query(
            "SELECT id, sync_id, knowledge_id, name, time_stamp::text, deleted::text FROM person"
        ).map { row in
            [
                "id": JSON(row[0] ?? ""), "syncId": JSON(row[1] ?? ""), "knowledgeId": JSON(row[2] ?? ""),
                "name": JSON(row[3] ?? ""), "timeStamp": JSON(row[4].flatMap { Int($0) } ?? 0),
                "deleted": JSON(row[5] == "true"),
            ]
        }.sortedByText
    }
}
