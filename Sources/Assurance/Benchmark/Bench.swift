import Commands
import LoadTools

/// What the figures share: where and how much is measured, and the program that is.
///
/// Each figure starts servers of its own with data in a temporary folder and loads them from this process over HTTP, so that
/// server and load share the machine.
struct Bench: Sendable {
    let folder: WorkFolder
    let scale: Scale
    /// Brokers and database for log and tables; `nil` for the embedded ones.
    let cluster: Cluster?
    let soakSeconds: Int
    /// How long the devices of ``Abuse`` are measured alone, and as long again during the abuse.
    let abuseSeconds: Int
    let abuses: [AbuseKind]
    /// Whether rates are limited meanwhile.
    let abuseHasRates: Bool
    let output: ProgressBar.Output
    let weir: WeirProgram

    func showing<Value>(
        _ title: String, total: Int?, unit: String, _ body: (ProgressBar) async throws -> Value
    ) async throws -> Value {
        let bar = ProgressBar(title, total: total, unit: unit, output: output)
        defer { bar.finish() }
        return try await body(bar)
    }

    /// Runs the repetitions of a figure after `warmUps` that do not count; the body gets the number of the repetition.
    func repeating<Value>(warmUps: Int = 1, _ body: (Int) async throws -> Value) async throws -> [Value] {
        for number in 0..<warmUps { _ = try await body(number) }
        var measured: [Value] = []
        for number in 0..<scale.repetitions { measured.append(try await body(warmUps + number)) }
        return measured
    }

    /// Runs a body with topics and tables of its own in the cluster, which are removed afterwards; with `nil` without a cluster.
    func withSpace<Value>(_ body: (ClusterSpace?) async throws -> Value) async throws -> Value {
        guard let cluster else { return try await body(nil) }
        return try await ClusterSpace.with(cluster, weir, body)
    }

    /// Runs a body with a server of its own, which is stopped afterwards.
    func withServer<Value>(
        _ name: String, limits: ServerProcess.Limits = .none, _ body: (ServerProcess) async throws -> Value
    ) async throws -> Value {
        try await withSpace { try await withServer(name, in: $0, limits: limits, body) }
    }

    /// Runs a body with a server whose topics and tables remain.
    ///
    /// - Parameter flags: further ones, of the process that has the gateway.
    func withServer<Value>(
        _ name: String, in space: ClusterSpace?, schema: String = Workload.schema, limits: ServerProcess.Limits = .none,
        flags: [String] = [], _ body: (ServerProcess) async throws -> Value
    ) async throws -> Value {
        let server = try await ServerProcess.start(
            weir, in: folder, name: name, space: space, schema: schema, limits: limits, gatewayFlags: flags)
        let value = try await body(server)
        try await server.stop()
        return value
    }

    /// Runs a body with an embedded server that has the tables of ``AbusiveOwner`` and the default settings.
    func withAbusedServer<Value>(_ name: String, _ body: (ServerProcess) async throws -> Value) async throws -> Value {
        try await withServer(
            name, in: nil, schema: AbusiveOwner.schema, limits: abuseHasRates ? .all : .allButRates, body)
    }
}

protocol Figure: Sendable {
    /// The name in `--only` and in the JSON; stable.
    var name: String { get }
    var title: String { get }
    func measure(_ bench: Bench) async throws -> FigureResult
}

enum Scale: String, Sendable, CaseIterable {
    /// A few seconds: whether everything works, no figures.
    case smoke
    /// A few minutes.
    case small
    /// As much as the targets were set for; an hour, and some 20 GB of disk.
    case full

    func pick<Value>(_ smoke: Value, _ small: Value, _ full: Value) -> Value {
        switch self {
        case .smoke: smoke
        case .small: small
        case .full: full
        }
    }

    var repetitions: Int { pick(1, 3, 5) }
}
