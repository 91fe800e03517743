import Commands
import Configuration

enum Face: String, CaseIterable, Sendable {
    case text
    case json
}

struct ServerConfiguration: ConfigurationComponent {
    var address = NetworkAddress("127.0.0.1:8080")!
    var maxBatch = 4 << 20
    var wait: Duration = .seconds(10)
    var workers = 2
    var compress = false
    var face = Face.text
    var brokers = ["a:1"]
    var title: String?

    static var settings: [Setting<Self>] {
        Setting("address", \.address, .address, "Where requests are accepted.")
        Setting("max-batch-bytes", \.maxBatch, .byteSize(in: 1024...(64 << 20)), "The largest request.")
        Setting(
            "limits.wait", \.wait, .duration(in: .milliseconds(1)...(.seconds(50))), "How long a request waits.")
        Setting("workers", \.workers, .integer(in: 1...64), "Threads.")
        Setting("compress", \.compress, .boolean, "Whether answers are compressed.")
        Setting("face", \.face, .choice(Face.self), "How lines look: one | the other.")
        Setting("brokers", \.brokers, .list(counts: 1...3), "Where the log is.")
        Setting(optional: "title", \.title, .string(lengths: 0...10), "A name.")
    }

    func validate(_ context: ValidationContext<Self>) throws(ConfigurationProblem) {
        guard brokers.count > workers else { return }
        throw context.problem(with: \.brokers, "at most one for each of the \(workers) workers")
    }
}

struct StoreConfiguration: ConfigurationComponent {
    var directory = ""
    var password: Secret?
    var token = Secret("")

    static var settings: [Setting<Self>] {
        Setting(required: "directory", \.directory, .path, "Where data is kept.")
        Setting(optional: "password", \.password, .secret(lengths: 4...20), "Who may enter.")
        Setting(required: "token", \.token, .secret(), "Who may speak.")
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

    static func load<Settings>(
        file: String? = nil, environment: [String: String] = [:], flags: [CommandOptionValue] = [],
        files: [String: String] = [:], reading body: (ConfigurationReader) -> Settings
    ) throws(ConfigurationProblems) -> Configuration<Settings> {
        let sources = ConfigurationSources(environment: environment, flags: flags, defaultFile: "weir.yaml") {
            (path, _) throws(FileFault) in
            guard let text = path == "weir.yaml" ? file : files[path] else {
                throw FileFault(code: 2, message: "No such file or directory")
            }
            return Array(text.utf8)
        }
        return try schema.load(from: sources, body)
    }

    /// The settings of the server alone.
    static func server(
        file: String? = nil, environment: [String: String] = [:], flags: [CommandOptionValue] = [],
        files: [String: String] = [:]
    ) throws(ConfigurationProblems) -> Configuration<ServerConfiguration> {
        try load(file: file, environment: environment, flags: flags, files: files) { $0.read() }
    }

    /// What loading reports, one line each.
    static func problems(
        file: String? = nil, environment: [String: String] = [:], flags: [CommandOptionValue] = [],
        files: [String: String] = [:],
        reading body: (ConfigurationReader) -> Void = { _ = $0.read(ServerConfiguration.self) }
    ) -> [String] {
        do throws(ConfigurationProblems) {
            _ = try load(file: file, environment: environment, flags: flags, files: files, reading: body)
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }
}
