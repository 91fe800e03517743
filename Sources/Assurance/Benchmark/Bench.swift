import Commands

/// What the figures share: the disk to measure on, how much, and who is told how far it is.
struct Bench: Sendable {
    let folder: WorkFolder
    let scale: Scale
    /// Where log and tables are; `nil` for the embedded ones.
    let cluster: Cluster?
    /// How long the soak takes.
    let soakSeconds: Int
    private let output: ProgressBar.Output
    let weir: WeirProgram

    init(
        folder: WorkFolder, scale: Scale, cluster: Cluster?, soakSeconds: Int, output: ProgressBar.Output,
        weir: WeirProgram
    ) {
        self.cluster = cluster
        self.weir = weir
        self.folder = folder
        self.scale = scale
        self.soakSeconds = soakSeconds
        self.output = output
    }

    /// Shows how far some work has come while it is done.
    func showing<Value>(
        _ title: String, total: Int?, unit: String, _ body: (ProgressBar) async throws -> Value
    ) async throws -> Value {
        let bar = ProgressBar(title, total: total, unit: unit, output: output)
        defer { bar.finish() }
        return try await body(bar)
    }

    /// Measures against a server of its own, which is stopped afterwards.
    func withServer<Value>(_ name: String, _ body: (ServerProcess) async throws -> Value) async throws -> Value {
        guard let cluster else { return try await withServer(name, in: nil, body) }
        return try await ClusterSpace.with(cluster, weir) { space in
            try await withServer(name, in: space, body)
        }
    }

    /// Measures against a server of its own whose topics and tables are there afterwards.
    func withServer<Value>(
        _ name: String, in space: ClusterSpace?, _ body: (ServerProcess) async throws -> Value
    ) async throws -> Value {
        let server = try await ServerProcess.start(weir, in: folder, name: name, space: space)
        let value = try await body(server)
        try await server.stop()
        return value
    }
}

/// One of the figures.
protocol Figure: Sendable {
    /// The name by which `--only` and the JSON call it; stable.
    var name: String { get }
    /// What it says, in a few words.
    var title: String { get }
    /// Measures it.
    func measure(_ bench: Bench) async throws -> FigureResult
}
