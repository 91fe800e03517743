import Foundation
import LoadTools
import Testing

/// Settings from the file, the environment and flags, and the reference that lists them.
@Suite(.timeLimit(.minutes(5))) struct SettingTests {
    private static let reference = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent(
            "docs/configuration.md")

    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    /// `weir config` with a schema file; its lines by key, each with value and origin.
    private func settings(
        _ flags: String..., environment: [String: String] = [:]
    ) async throws -> [String: Setting] {
        try await settings(flags, environment: environment)
    }

    private func settings(
        _ flags: [String], environment: [String: String] = [:]
    ) async throws -> [String: Setting] {
        let run = try await CommandRun.run(["config"] + flags, in: folder, environment: environment)
        #expect(run.code == 0, "\(run.errors)")
        let lines = try run.output.split(separator: "\n").map { line in
            let match = try #require(line.wholeMatch(of: /(?:# )?([a-z.-]+): *(.*?) +# (.+)/), "\(line)")
            return (String(match.1), Setting(value: String(match.2), origin: String(match.3)))
        }
        return try Dictionary(lines) { _, _ in throw Twice() }
    }

    /// A setting in force, as it is printed.
    private struct Setting: Equatable {
        let value: String
        let origin: String
    }

    private struct Twice: Error {}

    @Test func theReferenceIsWhatTheProgramPrints() async throws {
        let run = try await CommandRun.run("config-reference", in: folder)
        #expect(run.code == 0)
        let committed = try Data(contentsOf: Self.reference)
        #expect(
            committed == Data(run.output.utf8),
            "docs/configuration.md is out of date: swift run weir config-reference > docs/configuration.md")
    }

    /// Else load generators, and the devices of tests, would measure a limit.
    @Test func loadGeneratorsAreServedWithoutAnyLimitOfRates() throws {
        let text = try String(contentsOf: Self.reference, encoding: .utf8)
        let rates = text.matches(of: /\n\| `(gateway\.(?:caller|device)-[a-z-]+-per-(?:second|day))`/)
        #expect(Set(rates.map { String($0.1) }) == Set(RateFlags.settings.keys))
    }

    @Test func everyKeyOfTheReferenceIsRead() async throws {
        let text = try String(contentsOf: Self.reference, encoding: .utf8)
        let documented = text.matches(of: /\n\| `([a-z.-]+)`/).map { String($0.1) }
        #expect(documented.count > 40)
        // `weir config` prints what the components have read, and nothing else.
        let embedded = try await settings("--schema", "schema.yaml").keys
        let cluster = try await settings(
            "--schema", "schema.yaml", "--storage", "cluster", "--kafka.servers", "127.0.0.1:9092"
        ).keys
        let brokers = ["--kafka.servers", "127.0.0.1:9092"]
        var roles: Set<String> = []
        for role in ["gateway", "ingest", "ordering", "fanout"] {
            let read = try await settings([role] + brokers).keys
            #expect(read.contains("kafka.servers"))
            #expect(!read.contains("schema"))
            roles.formUnion(read)
        }
        #expect(Set(documented) == Set(embedded).union(cluster).union(roles))
        #expect(documented.count == Set(documented).count)
        // The report of a process lists only what it reads.
        #expect(Set(embedded).subtracting(cluster).allSatisfy { $0.hasPrefix("changelog.") || $0.hasPrefix("store.") })
        #expect(!embedded.contains { $0.hasPrefix("kafka.") || $0.hasPrefix("postgres.") })
    }

    @Test func aFlagBeatsTheEnvironmentWhichBeatsTheFile() async throws {
        try folder.write(
            """
            schema: from-file.yaml
            partitions: 8
            log:
              level: debug
            gateway:
              address: 127.0.0.1:9000
            """, to: "weir.yaml")
        let environment = ["WEIR_PARTITIONS": "16", "WEIR_LOG_LEVEL": "error"]
        let file = try await settings()
        #expect(file["partitions"] == Setting(value: "8", origin: "weir.yaml:2:13"))
        #expect(file["log.level"] == Setting(value: "debug", origin: "weir.yaml:4:10"))
        #expect(file["data"]?.origin == "default")
        let variables = try await settings(environment: environment)
        #expect(variables["partitions"] == Setting(value: "16", origin: "WEIR_PARTITIONS"))
        #expect(variables["log.level"] == Setting(value: "error", origin: "WEIR_LOG_LEVEL"))
        #expect(variables["schema"] == Setting(value: "\"from-file.yaml\"", origin: "weir.yaml:1:9"))
        let flags = try await settings("--partitions", "32", "--address=[::1]:7", environment: environment)
        #expect(flags["partitions"] == Setting(value: "32", origin: "--partitions"))
        #expect(flags["gateway.address"] == Setting(value: "\"[::1]:7\"", origin: "--address"))
        #expect(flags["log.level"]?.origin == "WEIR_LOG_LEVEL")
    }

    /// A role opens only the files of the secrets that it uses; wrong settings of other roles are reported in any case.
    @Test func aRoleOpensOnlyTheSecretsThatItUses() async throws {
        try folder.write(
            """
            kafka:
              servers: [127.0.0.1:9092]
              sasl.password-file: kafka-password
            postgres.password-file: postgres-password
            link.key-file: link-key
            """, to: "shared.yaml")
        let secrets = [
            "gateway": ["kafka.sasl.password", "link.key", "postgres.password"], "ingest": ["kafka.sasl.password"],
            "ordering": ["kafka.sasl.password", "postgres.password"],
            "fanout": ["kafka.sasl.password", "link.key", "postgres.password"],
        ]
        let files = [
            "kafka.sasl.password": "kafka-password", "link.key": "link-key", "postgres.password": "postgres-password",
        ]
        for (role, used) in secrets {
            let without = try await CommandRun.run("config", role, "--config", "shared.yaml", in: folder)
            #expect(without.code == 64)
            let named = files.filter { file in without.errorLines.contains { $0.hasPrefix("\(file.value) (") } }
            #expect(named.keys.sorted() == used && without.errorLines.count == used.count, "\(role): \(without.errors)")
        }
        for (role, used) in secrets {
            let own = try TestFolder()
            try own.write(String(contentsOfFile: folder.path + "/shared.yaml", encoding: .utf8), to: "shared.yaml")
            for secret in used { try own.write(String(repeating: "a1", count: 32), to: try #require(files[secret])) }
            let run = try await CommandRun.run("config", role, "--config", "shared.yaml", in: own)
            #expect(run.code == 0, "\(role): \(run.errors)")
            for secret in files.keys {
                let isShown = run.output.contains("# \(secret): ***")
                #expect(isShown == used.contains(secret), "\(role): \(secret)")
            }
            // The process opens the same files as its report.
            let start = try await CommandRun.run(
                role, "--config", "shared.yaml", "--operations.address", "nowhere", in: own,
                environment: ["WEIR_POSTGRES_CONNECTIONS": "none", "WEIR_LINK_KEYS": "x"])
            #expect(start.code == 64)
            #expect(start.errorLines.count == 3, "\(role): \(start.errors)")
            for fault in ["--operations.address: ", "WEIR_POSTGRES_CONNECTIONS: ", "WEIR_LINK_KEYS: is no setting"] {
                #expect(start.errorLines.contains { $0.hasPrefix(fault) }, "\(role): \(start.errors)")
            }
        }
    }

    @Test func unknownKeysAreReportedWithTheirPositionAndTheNearestKey() async throws {
        try folder.write("schema: s.yaml\npartitons: 8\nlog:\n  levl: debug\n", to: "other.yaml")
        let run = try await CommandRun.run(
            "config", "--config", "other.yaml", in: folder, environment: ["WEIR_GATEWAY_ADRESS": "x"])
        #expect(run.code == 64)
        #expect(run.output.isEmpty)
        #expect(
            Set(run.errorLines) == [
                "other.yaml:2:1: partitons: is no setting; did you mean partitions?",
                "other.yaml:4:3: log.levl: is no setting; did you mean log.level?",
                "WEIR_GATEWAY_ADRESS: is no setting; did you mean WEIR_GATEWAY_ADDRESS?",
            ])
    }

    @Test func allWrongValuesAreReportedTogetherWithWhatIsExpected() async throws {
        try folder.write("gateway:\n  threads: many\n", to: "weir.yaml")
        let run = try await CommandRun.run(
            "run", "--partitions", "2000", "--clock", "x", "--piece-bytes", "5", in: folder,
            environment: ["WEIR_LOG_LEVEL": "loud"])
        #expect(run.code == 64)
        let faults = [
            ("--partitions: ", "\"2000\" is not allowed; expected an integer from 1 to 1024"),
            ("--clock: ", "expected log-time, or sequence(N)"),
            ("--piece-bytes: ", "expected a size from 1KiB to 16MiB"),
            ("WEIR_LOG_LEVEL: ", "expected one of trace, debug"), ("weir.yaml:2:12: ", "\"many\" is not allowed"),
            ("schema: ", "is required; set it in the configuration file, as WEIR_SCHEMA or as --schema"),
        ]
        #expect(run.errorLines.count == faults.count, "\(run.errors)")
        for (start, explanation) in faults {
            let isNamed = run.errorLines.contains { $0.hasPrefix(start) && $0.contains(explanation) }
            #expect(isNamed, "\(start): \(run.errors)")
        }
    }

    @Test func aMissingConfigurationFileThatWasNamedIsAnError() async throws {
        let run = try await CommandRun.run("config", "--schema", "s.yaml", "--config", "none.yaml", in: folder)
        #expect(run.code == 64)
        #expect(run.errors.contains("none.yaml"))
    }
}
