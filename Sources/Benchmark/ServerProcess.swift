#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A `weir run` of its own, the same program as this one, with its data in a folder of the measurement.
final class ServerProcess: Sendable {
    /// Where it listens on 127.0.0.1.
    let port: UInt16
    /// Its data.
    let folder: String
    /// The place of its topics and tables, where they are not in the folder.
    let space: ClusterSpace?
    /// Brokers and database, where they run on this machine.
    let neighbours: Neighbours
    private let weir: WeirProcess

    var process: pid_t { weir.process }

    /// Starts a server with an empty folder and returns when it is ready for requests.
    static func start(
        in folder: WorkFolder, name: String, space: ClusterSpace? = nil, interruption: Interruption
    ) async throws -> ServerProcess {
        let schema = try folder.write(Workload.schema, to: name + ".yaml")
        let data = folder.path + "/" + name
        var arguments = [
            "weir", "run", "--schema", schema, "--data", data, "--address", "127.0.0.1:0", "--log-format", "json",
            // All load comes from one address.
            "--gateway.max-connections-per-address", "0",
            // What is measured is how fast it can go, however far behind it falls.
            "--gateway.max-lag", "1d",
            // Several may run beside each other, and beside one that serves.
            "--operations.address", "off",
        ]
        if let space { arguments += ["--storage", "cluster"] + space.logFlags + space.tableFlags }
        let weir = try WeirProcess(arguments, interruption: interruption)
        let lines = weir.lines
        guard let port = try await LoadThreads.run({ lines.readPort() }) else {
            throw BenchmarkFailure("the server did not start:\n" + lines.newest.joined(separator: "\n"))
        }
        lines.readOn()
        let neighbours = try await Neighbours.find(space?.cluster)
        return ServerProcess(weir, port: port, folder: data, space: space, neighbours: neighbours)
    }

    private init(_ weir: WeirProcess, port: UInt16, folder: String, space: ClusterSpace?, neighbours: Neighbours) {
        self.weir = weir
        self.port = port
        self.folder = folder
        self.space = space
        self.neighbours = neighbours
    }

    /// Asks the server to stop, waits until it has and removes its data.
    func stop() async throws {
        try await weir.stop()
        try WorkFolder.remove(folder)
    }
}
