import Kafka
import LoadTools
import Postgres

/// Topics with a prefix and a schema of Postgres that belong to one measurement.
struct ClusterSpace: Sendable {
    let cluster: Cluster
    /// The prefix of the topics, without the full stop behind it, and the name of the schema.
    let name: String

    /// The topics of Weir, without the prefix.
    private static let topics = ["uploads", "changes", "ordered", "control", "dead-letters"]
    /// The topic of the baseline.
    private static let raw = "raw"
    /// Milliseconds that a request to the brokers may take.
    private static let limit = 30_000

    /// Creates topics, runs a body and removes topics and tables, however the body ends.
    static func with<Value>(
        _ cluster: Cluster, _ weir: WeirProgram, _ body: (ClusterSpace) async throws -> Value
    ) async throws -> Value {
        // Fails on a wrong connection string before anything is created.
        try await LoadThreads.run { try cluster.session { _ in } }
        // Unique, also among several machines.
        let space = ClusterSpace(
            cluster: cluster, name: "weir_bench_" + String(UInt64.random(in: 0...(.max)), radix: 36))
        let result: Result<Value, any Error>
        do {
            try await space.create(weir)
            result = .success(try await body(space))
        } catch {
            result = .failure(error)
        }
        do {
            try await space.remove()
        } catch {
            let left = "topics \(space.name).* and schema \(space.name) are left behind: \(error)"
            if case .failure(let first) = result { throw LoadFailure("\(first); then \(left)") }
            throw LoadFailure(left)
        }
        return try result.get()
    }

    /// Flags of commands for this log.
    var logFlags: [String] {
        ["--kafka.servers", cluster.brokers, "--kafka.topic-prefix", name + "."]
    }

    /// Flags of commands for these tables.
    var tableFlags: [String] { ["--postgres.shards", cluster.database, "--postgres.schema", name] }

    /// The topic of the baseline, with as many partitions as the others.
    var rawTopic: String { "\(name).\(Self.raw)" }

    private func create(_ weir: WeirProgram) async throws {
        let create =
            ["topics", "create", "--partitions", "\(Owners.partitions)"]
            + ["--replication", "\(cluster.replication)"] + logFlags
        try await weir.run(create)
        try await withClient { client in
            let topic = KafkaNewTopic(
                name: rawTopic, partitionCount: Owners.partitions, replicationFactor: cluster.replication, settings: [])
            if let refused = try client.create([topic], milliseconds: Self.limit).first { throw refused.error }
        }
    }

    /// Removes the tables, so that ordering starts from the beginning.
    func removeTables() async throws {
        try await LoadThreads.run { [self] in
            try cluster.session {
                try $0.execute("SET client_min_messages = warning; DROP SCHEMA IF EXISTS \(name) CASCADE")
            }
        }
    }

    private func remove() async throws {
        try await withClient { client in
            let names = (Self.topics + [Self.raw]).map { "\(name).\($0)" }
            for (_, error) in try client.delete(topics: names, milliseconds: Self.limit)
            where error.code != .unknownTopicOrPartition { throw error }
        }
        try await removeTables()
    }

    private func withClient(_ body: @escaping @Sendable (KafkaClient) throws -> Void) async throws {
        try await cluster.withClient(.producer) { client in
            try await LoadThreads.run { try body(client) }
        }
    }
}
