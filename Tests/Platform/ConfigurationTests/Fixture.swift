import Commands
import Configuration

enum Face: String, CaseIterable, Sendable {
    case text
    case json
}

struct ServerConfiguration: ConfigurationComponent {
    static let address = ConfigurationKey(
        "address", .address, default: NetworkAddress("127.0.0.1:8080")!, "Where requests are accepted.")
    static let maxBatch = ConfigurationKey(
        "max-batch-bytes", .byteSize(in: 1024...(64 << 20)), default: 4 << 20, "The largest request.")
    static let wait = ConfigurationKey(
        "limits.wait", .duration(in: .milliseconds(1)...(.seconds(50))), default: .seconds(10), "How long one waits.")
    static let workers = ConfigurationKey("workers", .integer(in: 1...64), default: 2, "Threads.")
    static let compress = ConfigurationKey("compress", .boolean, default: false, "Whether answers are compressed.")
    static let face = ConfigurationKey("face", .choice(Face.self), default: .text, "How lines look: one | the other.")
    static let brokers = ConfigurationKey("brokers", .list(counts: 1...3), default: ["a:1"], "Where the log is.")
    static let title = ConfigurationKey(optional: "title", .string(lengths: 0...10), "A name.")
    static let keys: [any DeclaredConfigurationKey] = [
        address, maxBatch, wait, workers, compress, face, brokers, title,
    ]

    let address: NetworkAddress
    let maxBatch: Int
    let wait: Duration
    let workers: Int
    let compress: Bool
    let face: Face
    let brokers: [String]
    let title: String?

    init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        address = try reader.read(Self.address)
        maxBatch = try reader.read(Self.maxBatch)
        wait = try reader.read(Self.wait)
        workers = try reader.read(Self.workers)
        compress = try reader.read(Self.compress)
        face = try reader.read(Self.face)
        brokers = try reader.read(Self.brokers)
        title = try reader.read(Self.title)
        if brokers.count > workers {
            throw reader.problem(with: Self.brokers, "at most one for each of the \(workers) workers")
        }
    }
}

struct StoreConfiguration: ConfigurationComponent {
    static let directory = ConfigurationKey(required: "directory", .path, "Where data is kept.")
    static let password = ConfigurationKey(optional: "password", .secret(lengths: 4...20), "Who may enter.")
    static let token = ConfigurationKey(required: "token", .secret(), "Who may speak.")
    static let keys: [any DeclaredConfigurationKey] = [directory, password, token]

    let directory: String
    let password: Secret?
    let token: Secret

    init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        directory = try reader.read(Self.directory)
        password = try reader.read(Self.password)
        token = try reader.read(Self.token)
    }
}

/// A schema of two components, and files that need no disk.
enum Fixture {
    static let schema: ConfigurationSchema = {
        var schema = ConfigurationSchema(program: "weir")
        schema.add(ServerConfiguration.self, as: "server", "Server")
        schema.add(StoreConfiguration.self, as: "store", "Store")
        schema.addShortFlag("data", for: "store.directory")
        return schema
    }()

    static func load(
        file: String? = nil, environment: [String: String] = [:], flags: [CommandOptionValue] = [],
        files: [String: String] = [:], for scopes: [String]? = ["server"]
    ) throws(ConfigurationProblems) -> Configuration {
        let sources = ConfigurationSources(environment: environment, flags: flags, defaultFile: "weir.yaml") {
            (path, _) throws(FileFault) in
            guard let text = path == "weir.yaml" ? file : files[path] else {
                throw FileFault(code: 2, message: "No such file or directory")
            }
            return Array(text.utf8)
        }
        return try Configuration.load(schema, from: sources, for: scopes)
    }

    static func server(
        file: String? = nil, environment: [String: String] = [:], flags: [CommandOptionValue] = []
    ) throws -> ServerConfiguration {
        try load(file: file, environment: environment, flags: flags).read(ServerConfiguration.self, from: "server")
    }

    /// What loading complains of, one line each.
    static func problems(
        file: String? = nil, environment: [String: String] = [:], flags: [CommandOptionValue] = [],
        files: [String: String] = [:], for scopes: [String]? = ["server"]
    ) -> [String] {
        do throws(ConfigurationProblems) {
            _ = try load(file: file, environment: environment, flags: flags, files: files, for: scopes)
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }
}
