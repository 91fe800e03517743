import AsyncPrimitives
import KafkaChangeLog
import Testing
import TopicAudit

/// Checks the topics of a cluster at the end: records are in order, and a repeated record has the same bytes.
struct LogAudit {
    /// How many records repeat an earlier one.
    let repeats: Int
    /// How many rows the results hold, without repeats.
    let rows: Int
    /// For each partition the offset after the newest part of `changes` that has a result.
    let orderedUpTo: [Int64]

    /// Reads `changes` and `ordered` of a cluster to their ends.
    static func check(_ cluster: WeirCluster) async throws -> LogAudit {
        let servers = cluster.servers.split(separator: ",").map(String.init)
        let log = try await KafkaChangeLog(KafkaChangeLogConfiguration(servers: servers, topicPrefix: cluster.prefix))
        let result = await Result.capturing { try await TopicAudit.read(log, partitions: cluster.partitions) }
        await log.close()
        let audit = try result.get()
        #expect(audit.findings.isEmpty, "\(audit.findings.joined(separator: "\n"))")
        return LogAudit(
            repeats: audit.repeats, rows: audit.rows,
            orderedUpTo: (0..<cluster.partitions).map { audit.orderedUpTo[$0] ?? 0 })
    }
}
