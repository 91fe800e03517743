import Glibc
import KafkaServer
import LoadTools
import PostgresServer
import ServerShell
import SyncModel

/// A cluster of two processes of each role with brokers and a database, and proxies between them.
final class ChaosCluster: Sendable {
    struct Options: Sendable {
        /// The program `weir`.
        var program: String
        var partitions = 8
        /// Brokers that run already, as `host:port,…`; they get no faults and no proxies.
        var brokers: String?
        /// A database that runs already, as a connection string of libpq; it gets no faults and no proxies.
        var database: String?
    }

    /// Processes of each role.
    static let copies = 2

    let options: Options
    let folder: WorkFolder
    let topicPrefix: String
    /// The brokers, if this program started them.
    let kafka: KafkaServer?
    /// The database, if this program started it.
    let postgres: PostgresServer?
    let members: [Member]
    let gatewayPorts: [UInt16]
    let tokens: TokenIssuer
    let tables: ClusterTables
    /// The brokers without a proxy.
    let brokers: String
    private let config: String

    /// Starts brokers and database, creates topics and tables, and starts all processes.
    static func start(
        _ options: Options, in folder: WorkFolder, _ events: EventLog,
        onEnd: @escaping @Sendable (Member, Int32) -> Void
    ) async throws -> ChaosCluster {
        let names = Member.Role.allCases.flatMap { role in (1...copies).map { "\(role.rawValue)-\($0)" } }
        let hops = try options.brokers == nil ? names.map { _ in try Hop() } : []
        events.record("brokers and database start")
        let kafka: KafkaServer? =
            options.brokers == nil
            ? try await KafkaServer.start(
                proxied: hops.map { .init(port: Int($0.server), proxyPort: Int($0.proxy)) }) : nil
        var postgres: PostgresServer?
        do {
            if options.database == nil {
                postgres = try await PostgresServer.startOnNetwork(
                    settings: ["shared_buffers": "128MB", "autovacuum": "on", "max_wal_size": "2GB"])
            }
            return try await ChaosCluster(
                options, folder, names, kafka: kafka, hops, postgres: postgres, events, onEnd)
        } catch {
            await kafka?.end()
            await postgres?.end()
            throw error
        }
    }

    /// Two ports: of a server, and of the proxy before it.
    private struct Hop {
        let server: UInt16
        let proxy: UInt16

        init() throws { (server, proxy) = (UInt16(try FreePort.find()), UInt16(try FreePort.find())) }
    }

    private init(
        _ options: Options, _ folder: WorkFolder, _ names: [String], kafka: KafkaServer?, _ hops: [Hop],
        postgres: PostgresServer?, _ events: EventLog, _ onEnd: @escaping @Sendable (Member, Int32) -> Void
    ) async throws {
        self.options = options
        self.folder = folder
        self.kafka = kafka
        self.postgres = postgres
        topicPrefix = "chaos-\(UInt32.random(in: 0...(.max)))."
        guard let brokers = kafka?.servers ?? options.brokers,
            let database = postgres.map({ Self.connection($0.port) }) ?? options.database
        else { throw LoadFailure("there are no brokers or no database") }
        self.brokers = brokers
        tables = ClusterTables(connection: database, schema: try ChaosSchema.read())
        config = try Self.write(brokers, database, topicPrefix, folder)
        for command in [
            ["topics", "create", "--partitions", "\(options.partitions)", "--replication", "1"], ["migrate"],
        ] {
            try await Self.run(command, config, options.program, folder.path)
        }
        let links = try (1...Self.copies).map { _ in UInt16(try FreePort.find()) }
        let gateways = try (1...Self.copies).map { _ in UInt16(try FreePort.find()) }
        gatewayPorts = gateways
        tokens = try TokenIssuer(in: folder)
        var members: [Member] = []
        for (index, name) in names.enumerated() {
            let role = Member.Role.allCases[index / Self.copies]
            let number = index % Self.copies
            var arguments = ["--config", config]
            var proxies: [(name: String, proxy: FaultyProxy)] = []
            func through(_ target: UInt16, on port: UInt16? = nil, _ what: String) throws -> UInt16 {
                let proxy = try FaultyProxy(on: port ?? UInt16(FreePort.find()), to: target)
                proxies.append(("\(name) to \(what)", proxy))
                return proxy.port
            }
            if kafka != nil {
                let port = try through(hops[index].server, on: hops[index].proxy, "Kafka")
                arguments += ["--kafka.servers", "127.0.0.1:\(port)"]
            }
            if let postgres, [.ordering, .fanout].contains(role) {
                let port = try through(UInt16(postgres.port), "Postgres")
                arguments += ["--postgres.shards", Self.connection(Int(port))]
            }
            switch role {
            case .gateway:
                let ports = try links.enumerated().map { try through($0.element, "fanout-\($0.offset + 1)") }
                arguments +=
                    [
                        "--address", "127.0.0.1:\(gateways[number])", "--gateway.max-connections-per-address", "0",
                        "--link.fan-outs", ports.map { "127.0.0.1:\($0)" }.joined(separator: ","),
                    ] + RateFlags.unlimited + tokens.flags
            case .ingest, .ordering: arguments += ["--kafka.instance-name", name]
            case .fanout:
                arguments += ["--link.address", "127.0.0.1:\(links[number])", "--data", "\(folder.path)/\(name)"]
            }
            members.append(
                Member(
                    role, name: name, program: options.program, arguments: arguments,
                    operationsPort: UInt16(try FreePort.find()), folder: folder.path, proxies: proxies, events,
                    onEnd: onEnd))
        }
        self.members = members
        do {
            for member in members { try member.start() }
        } catch {
            killMembers()
            throw error
        }
    }

    private static func connection(_ port: Int) -> String {
        "host=127.0.0.1 port=\(port) user=weir dbname=postgres sslmode=disable"
    }

    private static func write(
        _ brokers: String, _ database: String, _ prefix: String, _ folder: WorkFolder
    ) throws -> String {
        let schema = try folder.write(ChaosSchema.text, to: "schema.yaml")
        return try folder.write(
            """
            storage: cluster
            schema: \(schema)
            kafka:
              topic-prefix: \(prefix)
              servers: [\(brokers.split(separator: ",").map { "\"\($0)\"" }.joined(separator: ", "))]
            postgres:
              shards: ["\(database)"]

            """, to: "weir.yaml")
    }

    /// Runs a command of `weir` to its end, which must succeed.
    private static func run(_ arguments: [String], _ config: String, _ program: String, _ folder: String) async throws {
        let (status, file) = try await finish(arguments + ["--config", config], program, folder)
        guard status == 0 else {
            throw LoadFailure("weir \(arguments.joined(separator: " ")) failed; its output is in \(file)")
        }
    }

    /// - Returns: the status of `waitpid`, and the file with the output.
    private static func finish(
        _ arguments: [String], _ program: String, _ folder: String
    ) async throws -> (status: Int32, file: String) {
        let file = "\(folder)/\(arguments[0]).log"
        let status = try await LoadThreads.run {
            ChildProcess.wait(for: try ChildProcess.start(["weir"] + arguments, at: program, appendingTo: file))
        }
        return (status, file)
    }

    /// Waits until all processes are ready; those that are not after `seconds`, with their reasons.
    func untilReady(seconds: Int) async throws -> [String] {
        try await LoadThreads.run { [members] in
            let end = SystemCall.nanoseconds() + Int64(seconds) * 1_000_000_000
            while true {
                let reasons = members.compactMap { member in member.unreadiness().map { "\(member.name): \($0)" } }
                if reasons.isEmpty || SystemCall.nanoseconds() > end { return reasons }
                SystemCall.wait(until: SystemCall.nanoseconds() + 100_000_000)
            }
        }
    }

    /// Stops all processes with SIGTERM, gateways first; those that did not exit with 0, with their status.
    func stopMembers() async throws -> [(member: Member, status: Int32)] {
        var unclean: [(member: Member, status: Int32)] = []
        for member in members {
            if let status = try await member.end(SIGTERM), status != 0 { unclean.append((member, status)) }
        }
        return unclean
    }

    func killMembers() { for member in members { member.send(SIGKILL) } }

    /// Runs `weir verify`; its output where it found a difference or failed.
    func verify() async throws -> String? {
        let (status, file) = try await Self.finish(
            ["verify", "--config", config, "--scratch", folder.path], options.program, folder.path)
        return status == 0
            ? nil : "weir verify: \(Member.text(of: status))\n\(try SystemCall.contents(of: file).suffix(4000))"
    }

    /// Ends brokers, database and proxies; their logs are copied into the folder where asked.
    func end(keepsLogs: Bool) async throws {
        killMembers()
        if keepsLogs {
            if let kafka { try copy("\(kafka.folder)/log-1", to: "kafka.log") }
            if let postgres { try copy("\(postgres.folder)/server.log", to: "postgres.log") }
        }
        for member in members { for (_, proxy) in member.proxies { proxy.end() } }
        await kafka?.end()
        await postgres?.end()
    }

    private func copy(_ file: String, to name: String) throws {
        _ = try folder.write(try SystemCall.contents(of: file), to: name)
    }
}
