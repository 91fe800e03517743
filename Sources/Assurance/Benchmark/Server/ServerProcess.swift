import Glibc
import LoadTools

/// The server that is measured: `weir run`, or a process for each role.
final class ServerProcess: Sendable {
    struct Part: Sendable {
        let name: String
        fileprivate let weir: WeirProcess

        var process: pid_t { weir.process }
    }

    /// The gateway's port on 127.0.0.1.
    let port: UInt16
    let folder: String
    /// Its topics and tables; `nil` where they are in the folder.
    let space: ClusterSpace?
    /// The processes, the gateway's first.
    let parts: [Part]
    private let cluster: ClusterProcesses

    var process: pid_t { parts[0].process }

    /// Starts measuring what all processes use, with brokers and database.
    func meter() throws -> Meter { try Meter(parts.map(\.process), cluster) }

    /// The default limits of a server that apply.
    enum Limits {
        case none
        /// An address has few connections, and uploads wait, and are refused, when stages lag.
        case allButRates
        case all
    }

    /// Starts a server with an empty folder and returns when it answers requests.
    ///
    /// - Parameter limits: what of the load is refused.
    static func start(
        _ weir: WeirProgram, in folder: WorkFolder, name: String, space: ClusterSpace? = nil,
        schema: String = Workload.schema, limits: Limits = .none, gatewayFlags: [String] = []
    ) async throws -> ServerProcess {
        let schema = try folder.write(schema, to: name + ".yaml")
        let start = Start(
            schema: schema, data: folder.path + "/" + name, space: space, program: weir,
            limits: limits, gatewayFlags: gatewayFlags)
        guard let space else { return try await start.inOneProcess(storage: []) }
        if space.cluster.isTogether {
            return try await start.inOneProcess(storage: ["--storage", "cluster"] + space.logFlags + space.tableFlags)
        }
        return try await start.roles(in: space)
    }

    private init(_ parts: [(name: String, weir: WeirProcess)], port: UInt16, _ start: Start) async throws {
        self.parts = parts.map { Part(name: $0.name, weir: $0.weir) }
        self.port = port
        folder = start.data
        space = start.space
        cluster = try await ClusterProcesses.find(start.space?.cluster)
    }

    /// Stops the processes, the gateway's first, and removes their data unless `keepsData`.
    func stop(keepsData: Bool = false) async throws {
        for part in parts { try await part.weir.stop() }
        if !keepsData { try WorkFolder.remove(folder) }
    }

    private struct Start {
        let schema: String
        let data: String
        let space: ClusterSpace?
        let program: WeirProgram
        let limits: Limits
        let gatewayFlags: [String]

        private var gateway: [String] {
            let address = ["--address", "127.0.0.1:0"] + gatewayFlags
            if limits == .all { return address }
            if limits == .allButRates { return address + RateFlags.unlimited }
            return address + RateFlags.unlimited + [
                // All load comes from one address.
                "--gateway.max-connections-per-address", "0",
                // Accepts uploads however far the stages are behind; each caller has the largest window.
                "--gateway.max-lag", "1d", "--gateway.caller-lag", "1h",
            ]
        }

        func inOneProcess(storage: [String]) async throws -> ServerProcess {
            let weir = try process("run", ["--schema", schema, "--data", data] + gateway + storage)
            let port = try await port(of: weir, containing: "The gateway listens")
            return try await ServerProcess([("run", weir)], port: port, self)
        }

        func roles(in space: ClusterSpace) async throws -> ServerProcess {
            try await program.run(["migrate", "--schema", schema] + space.logFlags + space.tableFlags)
            let fanOut = try process(
                "fanout", ["--data", data, "--link.address", "127.0.0.1:0"] + space.logFlags + space.tableFlags)
            let link = try await port(of: fanOut, containing: "Listening for gateways")
            let ordering = try process("ordering", space.logFlags + space.tableFlags)
            ordering.lines.readOn()
            let ingest = try process("ingest", space.logFlags)
            ingest.lines.readOn()
            let gateway = try process(
                "gateway", ["--link.fan-outs", "127.0.0.1:\(link)"] + gateway + space.logFlags)
            let port = try await port(of: gateway, containing: "The gateway listens")
            try await LoadThreads.run { try Self.waitUntilServed(port) }
            return try await ServerProcess(
                [("gateway", gateway), ("ingest", ingest), ("ordering", ordering), ("fanout", fanOut)], port: port, self
            )
        }

        private func process(_ command: String, _ flags: [String]) throws -> WeirProcess {
            // Without operations port: several servers may run on this machine.
            let always = [
                command, "--log-format", "json", "--log.level", "info", "--operations.address", "off",
            ]
            return try program.start(always + flags)
        }

        private func port(of weir: WeirProcess, containing text: String) async throws -> UInt16 {
            let lines = weir.lines
            guard let port = try await LoadThreads.run({ lines.readPort(containing: text) }) else {
                throw LoadFailure("the server did not start:\n" + lines.newest.joined(separator: "\n"))
            }
            lines.readOn()
            return port
        }

        /// Nanoseconds between two pulls, and until the start fails.
        private static let interval: Int64 = 20_000_000
        private static let limit: Int64 = 60_000_000_000

        /// Waits until pulls of every partition succeed.
        private static func waitUntilServed(_ port: UInt16) throws {
            let connection = try LoadConnection(port: port)
            let end = SystemCall.nanoseconds() + limit
            for owner in Owners.spread(Owners.partitions) {
                let pull = Requests(owner: owner, device: "k1").pull()
                while try connection.exchange(pull, { status, _ in status }) != 200 {
                    guard SystemCall.nanoseconds() < end else {
                        throw LoadFailure("no fan-out could be pulled from within a minute")
                    }
                    SystemCall.wait(until: SystemCall.nanoseconds() + interval)
                }
            }
        }
    }
}
