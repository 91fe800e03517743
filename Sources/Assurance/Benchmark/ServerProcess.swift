import Glibc

/// Weir as a process of its own, or as a process for each role, the same program as this one, with its data in a folder of
/// the measurement.
final class ServerProcess: Sendable {
    /// One of the processes.
    struct Part: Sendable {
        /// Its role, or the command that runs all of them.
        let name: String
        fileprivate let weir: WeirProcess

        var process: pid_t { weir.process }
    }

    /// Where it listens on 127.0.0.1.
    let port: UInt16
    /// Its data.
    let folder: String
    /// The place of its topics and tables, where they are not in the folder.
    let space: ClusterSpace?
    /// Brokers and database, where they run on this machine.
    let neighbours: Neighbours
    /// The processes, the one that takes requests first.
    let parts: [Part]

    /// The process that takes requests.
    var process: pid_t { parts[0].process }

    /// The CPU that all processes have used, in nanoseconds.
    func cpu() throws(BenchmarkFailure) -> Int64 {
        var sum: Int64 = 0
        for part in parts { sum += try SystemCall.cpuNanoseconds(of: part.process) }
        return sum
    }

    /// Starts a server with an empty folder and returns when it is ready for requests.
    static func start(
        _ weir: WeirProgram, in folder: WorkFolder, name: String, space: ClusterSpace? = nil
    ) async throws -> ServerProcess {
        let schema = try folder.write(Workload.schema, to: name + ".yaml")
        let data = folder.path + "/" + name
        let start = Start(schema: schema, data: data, program: weir)
        guard let space else { return try await start.alone(storage: [], space: nil) }
        if space.cluster.isTogether {
            return try await start.alone(
                storage: ["--storage", "cluster"] + space.logFlags + space.tableFlags, space: space)
        }
        return try await start.roles(in: space)
    }

    private init(
        _ parts: [Part], port: UInt16, folder: String, space: ClusterSpace?, neighbours: Neighbours
    ) {
        self.parts = parts
        self.port = port
        self.folder = folder
        self.space = space
        self.neighbours = neighbours
    }

    /// Asks the processes to stop, from the one that takes requests on, waits until they have and removes their data, or
    /// leaves it to the end of the benchmark.
    func stop(keepsData: Bool = false) async throws {
        for part in parts { try await part.weir.stop() }
        if !keepsData { try WorkFolder.remove(folder) }
    }

    /// How a server is started.
    private struct Start {
        let schema: String
        let data: String
        let program: WeirProgram

        private static let gateway = [
            "--address", "127.0.0.1:0",
            // All load comes from one address.
            "--gateway.max-connections-per-address", "0",
            // What is measured is how fast it can go, however far behind it falls.
            "--gateway.max-lag", "1d",
        ]

        /// In one process.
        func alone(storage: [String], space: ClusterSpace?) async throws -> ServerProcess {
            let weir = try process("run", ["--schema", schema, "--data", data] + Self.gateway + storage)
            let port = try await port(of: weir, saying: "The gateway listens")
            return ServerProcess(
                [Part(name: "run", weir: weir)], port: port, folder: data, space: space,
                neighbours: try await Neighbours.find(space?.cluster))
        }

        /// In a process for each role.
        func roles(in space: ClusterSpace) async throws -> ServerProcess {
            try await program.run(["migrate", "--schema", schema] + space.logFlags + space.tableFlags)
            let fanOut = try process(
                "fanout", ["--data", data, "--link.address", "127.0.0.1:0"] + space.logFlags + space.tableFlags)
            let link = try await port(of: fanOut, saying: "The link's server listens")
            let ordering = try process("ordering", space.logFlags + space.tableFlags)
            ordering.lines.readOn()
            let ingest = try process("ingest", space.logFlags)
            ingest.lines.readOn()
            let gateway = try process(
                "gateway", ["--link.fan-outs", "127.0.0.1:\(link)"] + Self.gateway + space.logFlags)
            let port = try await port(of: gateway, saying: "The gateway listens")
            try await LoadThreads.run { try Self.waitUntilServed(port) }
            let parts = [("gateway", gateway), ("ingest", ingest), ("ordering", ordering), ("fanout", fanOut)]
            return ServerProcess(
                parts.map { Part(name: $0.0, weir: $0.1) }, port: port, folder: data, space: space,
                neighbours: try await Neighbours.find(space.cluster))
        }

        private func process(_ command: String, _ flags: [String]) throws -> WeirProcess {
            // Several may run beside each other, and beside one that serves.
            let always = [
                command, "--log-format", "json", "--log.level", "info", "--operations.address", "off",
            ]
            return try program.start(always + flags)
        }

        private func port(of weir: WeirProcess, saying words: String) async throws -> UInt16 {
            let lines = weir.lines
            guard let port = try await LoadThreads.run({ lines.readPort(saying: words) }) else {
                throw BenchmarkFailure("the server did not start:\n" + lines.newest.joined(separator: "\n"))
            }
            lines.readOn()
            return port
        }

        /// Between two questions whether pulls of every partition are answered, and for how long it may take.
        private static let interval: Int64 = 20_000_000
        private static let limit: Int64 = 60_000_000_000

        private static func waitUntilServed(_ port: UInt16) throws {
            let connection = try LoadConnection(port: port)
            let end = SystemCall.nanoseconds() + limit
            for owner in Owners.spread(Owners.partitions) {
                let pull = Requests(owner: owner, device: "k1").pull()
                while try connection.exchange(pull, { status, _ in status }) != 200 {
                    guard SystemCall.nanoseconds() < end else {
                        throw BenchmarkFailure("no fan-out could be pulled from within a minute")
                    }
                    SystemCall.wait(until: SystemCall.nanoseconds() + interval)
                }
            }
        }
    }
}
