import Foundation
import Fuzzing
import KafkaServer
import Postgres
import PostgresServer
import ProgramRun
import Testing

/// `weir-bench` on brokers and a database at scale smoke: exact counts, the stable form of its report, and no topics or
/// schemas left behind.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ClusterBenchTests {
    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    private static let skipReason =
        PostgresServer.programs == nil
        ? PostgresServer.skipReason : KafkaServer.home == nil && KafkaServer.named == nil ? KafkaServer.skipReason : nil

    private static let endToEnd = [
        "changes_per_second", "raw_upsert_per_second", "ratio_to_raw_upsert", "raw_produce_per_second",
        "raw_consume_per_second", "server_cpu_per_change", "load_cpu_per_change",
    ]

    /// Whether every figure is measured; each starts processes of its own.
    private static let isLong = TestLength.current == .long

    private static let roles = ["gateway", "ingest", "ordering", "fanout"]

    /// The measures of each figure without the CPU of brokers and database, which may run on other machines.
    private static let numbers: [String: [String]] = [
        "end-to-end": endToEnd + roles.map { "\($0)_cpu_per_change" },
        "end-to-end-caller-lag": endToEnd + roles.map { "\($0)_cpu_per_change" },
        "end-to-end-change-ids": endToEnd + roles.map { "\($0)_cpu_per_change" },
        "replay": [
            "changes_per_second", "raw_upsert_per_second", "ratio_to_raw_upsert", "ordering_cpu_per_change",
            "ordering_memory",
        ],
        "upload": ["upload_p50", "upload_p99", "raw_produce_p50", "raw_produce_p99", "upload_p50_in_raw_produces"],
        "latency": ["poll_p50", "poll_p99", "upload_p50", "upload_p99"],
        "owners": [
            "few_owners", "many_owners", "rows", "batch_few_owners", "batch_many_owners", "batch_ratio",
            "batch_cpu_few_owners", "batch_cpu_many_owners", "batch_cpu_ratio", "single_few_owners",
            "single_many_owners", "single_ratio", "single_cpu_few_owners", "single_cpu_many_owners",
            "single_cpu_ratio",
        ],
        "rebuild": [
            "rows_per_second", "raw_copy_per_second", "ratio_to_raw_copy", "server_cpu_per_row", "server_memory",
        ],
        "soak": roles.flatMap { role in
            ["highest", "first", "last", "slope"].map { "\(role)_memory_\($0)" }
        } + ["pairs", "changes_per_second"],
    ]

    private static let ofClusterProcesses: Set = [
        "brokers_cpu_per_change", "database_cpu_per_change", "database_cpu_per_row",
    ]

    @Test(.enabled(if: skipReason == nil, "\(skipReason ?? "")"))
    func figuresOfAProcessForEachRoleReportTheirMeasuresAndCounts() async throws {
        try await measures(Self.numbers.filter { Self.isLong || ["end-to-end", "replay"].contains($0.key) })
    }

    @Test(
        .enabled(if: skipReason == nil, "\(skipReason ?? "")"),
        .enabled(if: isLong, "WEIR_TEST_LENGTH=long asks for it"))
    func figuresOfOneProcessReportTheirMeasuresAndCounts() async throws {
        try await measures(["end-to-end-growing": Self.endToEnd], "--together")
    }

    /// Runs figures and compares the names of their measures.
    private func measures(_ expected: [String: [String]], _ flags: String...) async throws {
        let postgres = try await PostgresServer.shared()
        let brokers = if let named = KafkaServer.named { named } else { try await KafkaServer.shared().servers }
        let run = try await CommandRun.run(
            [
                "--kafka", brokers, "--postgres", postgres.connectionString(), "--scale", "smoke", "--only",
                expected.keys.sorted().joined(separator: ","), "--folder", folder.path, "--json", "figures.json",
            ] + flags, of: .bench, in: folder)
        #expect(run.code == 0, "\(run.errors)")
        let file = try Data(contentsOf: URL(fileURLWithPath: folder.path + "/figures.json"))
        let report = JSON(try JSONSerialization.jsonObject(with: file))
        #expect(Set(report["figures"].array.compactMap { $0["name"].string }) == Set(expected.keys))
        for figure in report["figures"].array {
            let name = figure["name"].string ?? ""
            let names = figure["measures"].array.compactMap { $0["name"].string }
            #expect(names.filter { !Self.ofClusterProcesses.contains($0) } == expected[name], "\(name)")
            for measure in figure["measures"].array {
                #expect((measure["value"].value as? NSNumber)?.doubleValue.isFinite == true, "\(name): \(measure)")
            }
            #expect(!figure["checks"].array.isEmpty, "\(name)")
            for check in figure["checks"].array {
                #expect(check["found"] == check["expected"], "\(name): \(check)")
                #expect(check["expected"].int ?? 0 > 0, "\(name): \(check)")
            }
        }
        #expect(try await schemas(of: postgres) == [])
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(!left.contains { $0.hasPrefix("weir-bench-") }, "\(left)")
    }

    @Test(arguments: [
        (["--kafka", "127.0.0.1:1"], "both --kafka and --postgres"),
        (["--postgres", "dbname=weir"], "both --kafka and --postgres"),
        (["--replication", "3"], "both --kafka and --postgres"),
        (["--together"], "both --kafka and --postgres"),
        (["--kafka", "127.0.0.1:1", "--postgres", "host=x password=ocean"], "takes no password"),
        (["--kafka", "127.0.0.1:1", "--postgres", "ocean"], "connection string of libpq"),
        (["--kafka", "127.0.0.1:1", "--postgres", "dbname=weir", "--replication", "0"], "--replication takes"),
        (["--kafka", "127.0.0.1:1", "--postgres", "dbname=weir", "--only", "stream"], "no figure \"stream\""),
        (["--only", "replay"], "no figure \"replay\""),
    ]) func aWrongCallIsExplained(arguments: [String], explanation: String) async throws {
        let run = try await CommandRun.run(arguments, of: .bench, in: folder)
        #expect(run.code == 64)
        #expect(run.output.isEmpty)
        #expect(run.errors.contains(explanation), "\(run.errors)")
        #expect(!run.errors.contains("ocean"), "\(run.errors)")
    }

    @Test func anUnreachableDatabaseIsNamed() async throws {
        let run = try await CommandRun.run(
            "--kafka", "127.0.0.1:1", "--postgres", "host=/nowhere dbname=weir", "--scale", "smoke",
            "--folder", folder.path, of: .bench, in: folder)
        #expect(run.code == 1)
        #expect(run.errors.contains("host=/nowhere dbname=weir cannot be used"), "\(run.errors)")
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(!left.contains { $0.hasPrefix("weir-bench-") }, "\(left)")
    }

    /// The schemas that benchmarks left behind.
    private func schemas(of postgres: PostgresServer) async throws -> [String] {
        let pool = try await PostgresPool.start(ConnectionParameters(postgres.connectionString()), count: 1)
        let found: Result<[String], any Error>
        do {
            found = .success(
                try await pool.perform { connection in
                    let rows = try connection.queryOnce(
                        "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'weir\\_bench\\_%'")
                    return try (0..<rows.count).map { try rows.text($0, 0) }
                })
        } catch {
            found = .failure(error)
        }
        await pool.close()
        return try found.get()
    }
}
