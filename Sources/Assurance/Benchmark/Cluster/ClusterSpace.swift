import Kafka
import Postgres

/// A place of a measurement's own in a cluster: topics with a prefix and a schema that nobody else has.
struct ClusterSpace: Sendable {
    let cluster: Cluster
    /// The prefix of the topics, without the full stop behind it, and the name of the schema.
    let name: String

    /// What the topics of a history are called behind the prefix.
    private static let topics = ["uploads", "changes", "ordered", "control", "dead-letters"]
    /// The topic of the baseline.
    private static let raw = "raw"
    /// How long a question to the brokers may take, in milliseconds.
    private static let limit = 30_000

    /// Makes topics, runs a body and removes whatever came to be there, however the body ends.
    static func with<Value>(
        _ cluster: Cluster, _ weir: WeirProgram, _ body: (ClusterSpace) async throws -> Value
    ) async throws -> Value {
        // A wrong connection string is said before anything is made.
        try await LoadThreads.run { try cluster.session { _ in } }
        // Not the same twice, also for benchmarks of several machines.
        let space = ClusterSpace(
            cluster: cluster, name: "weir_bench_" + String(UInt64.random(in: 0...(.max)), radix: 36))
        let result: Result<Value, any Error>
        do {
            try await space.make(weir)
            result = .success(try await body(space))
        } catch {
            result = .failure(error)
        }
        do {
            try await space.remove()
        } catch {
            let left = "topics \(space.name).* and schema \(space.name) are left behind: \(error)"
            if case .failure(let first) = result { throw BenchmarkFailure("\(first); then \(left)") }
            throw BenchmarkFailure(left)
        }
        return try result.get()
    }

    /// The flags by which a command of Weir works on the log here.
    var logFlags: [String] {
        ["--kafka.servers", cluster.brokers, "--kafka.topic-prefix", name + "."]
    }

    /// The flags by which a process finds the tables here.
    var tableFlags: [String] { ["--postgres.shards", cluster.database, "--postgres.schema", name] }

    /// The topic of the baseline, with as many partitions as the others.
    var rawTopic: String { "\(name).\(Self.raw)" }

    private func make(_ weir: WeirProgram) async throws {
        let create =
            ["topics", "create", "--partitions", "\(Owners.partitions)"]
            + ["--replication", "\(cluster.replication)"] + logFlags
        try await weir.run(create)
        try await asking { client in
            let topic = KafkaNewTopic(
                name: rawTopic, partitionCount: Owners.partitions, replicationFactor: cluster.replication, settings: [])
            if let refused = try client.create([topic], milliseconds: Self.limit).first { throw refused.error }
        }
    }

    /// Removes the tables, as for a history that nothing was ordered of.
    func removeTables() async throws {
        try await LoadThreads.run { [self] in
            try cluster.session {
                try $0.execute("SET client_min_messages = warning; DROP SCHEMA IF EXISTS \(name) CASCADE")
            }
        }
    }

    private func remove() async throws {
        try await asking { client in
            let names = (Self.topics + [Self.raw]).map { "\(name).\($0)" }
            for (_, error) in try client.delete(topics: names, milliseconds: Self.limit)
            where error.code != .unknownTopicOrPartition { throw error }
        }
        try await removeTables()
    }

    /// Runs questions with a client of their own.
    private func asking(_ body: @escaping @Sendable (KafkaClient) throws -> Void) async throws {
        try await cluster.withClient(.producer) { client in
            try await LoadThreads.run { try body(client) }
        }
    }
}
