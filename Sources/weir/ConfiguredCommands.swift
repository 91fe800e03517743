import Commands
import Configuration
import KafkaChangeLog
import Observability

/// The commands that have settings.
enum ConfiguredCommands {
    /// Options of a command that are no settings.
    private static func own(of action: Weir.Action) -> [CommandOption] {
        switch action {
        case .verify: Verify.options
        case .replay: ReplayCommand.options
        case .createTopics: [TopicsCommand.replication, TopicsCommand.minimumInSync]
        case .migrate: [MigrateCommand.dryRun]
        default: []
        }
    }

    /// Runs one; throws what is wrong with its settings.
    static func run(_ invocation: CommandInvocation<Weir.Action>) async throws -> ExitCode {
        let own = own(of: invocation.action).map(\.name)
        let sources = ConfigurationSources(
            environment: Environment.variables, flags: invocation.options.filter { !own.contains($0.name) },
            defaultFile: Settings.defaultFile)
        func load(_ scopes: [String]) throws -> (Configuration, LogConfiguration) {
            let configuration = try Configuration.load(Settings.schema, from: sources, for: scopes)
            return (configuration, try configuration.read(LogConfiguration.self, from: "log"))
        }
        switch invocation.action {
        case .configuration where !invocation.arguments.isEmpty:
            let name = invocation.arguments[0]
            guard let role = ClusterRole(rawValue: name) else {
                let names = ClusterRole.allCases.map(\.rawValue).joined(separator: ", ")
                Output.complain("Error: \"\(name)\" is no role; there are \(names)\nSee \"weir config --help\".")
                return .usage
            }
            let (configuration, _) = try load(role.scopes)
            _ = try ClusterSettings(configuration, of: role)
            Output.write(configuration.report { role.reads($0) })
            return .success
        case .run, .configuration:
            let configuration = try Self.load(
                sources, embedded: EmbeddedSettings.scopes, cluster: ClusterSettings.allScopes)
            return try await whole(configuration, invocation)
        case .verify, .replay:
            let configuration = try Self.load(
                sources, embedded: OfflineSettings.scopes, cluster: OfflineClusterSettings.scopes)
            return try await beside(configuration, invocation)
        case .role(let role):
            let (configuration, logging) = try load(role.scopes)
            return await ClusterRun.run(try ClusterSettings(configuration, of: role), logging)
        case .createTopics, .checkTopics:
            let (configuration, logging) = try load(["log", "kafka"])
            let kafka = try configuration.read(KafkaChangeLogConfiguration.self, from: "kafka")
            let partitions = try configuration.read(PartitionsConfiguration.self, from: "").partitions
            return await logging.withLogger { logger in
                invocation.action == .createTopics
                    ? await TopicsCommand.create(kafka, partitions: partitions, logger, invocation)
                    : await TopicsCommand.check(kafka, logger)
            }
        case .migrate:
            let (configuration, logging) = try load(MigrateCommand.scopes)
            let settings = try MigrateSettings(configuration)
            let isDry = invocation.option(MigrateCommand.dryRun.name) != nil
            return await logging.withLogger { await MigrateCommand.run(settings, $0, isDry: isDry) }
        case .configurationReference, .checkSchema:
            preconditionFailure("the command has no settings")
        }
    }

    /// Loads the settings of a command that works on either storage.
    private static func load(
        _ sources: ConfigurationSources, embedded: [String], cluster: [String]
    ) throws -> Configuration {
        try Configuration.load(Settings.schema, from: sources) { (configuration) throws(ConfigurationProblem) in
            switch try configuration.read(StorageConfiguration.self, from: "").storage {
            case .embedded: embedded
            case .cluster: cluster
            }
        }
    }

    /// `weir verify` and `weir replay`.
    private static func beside(
        _ configuration: Configuration, _ invocation: CommandInvocation<Weir.Action>
    ) async throws -> ExitCode {
        let logging = try configuration.read(LogConfiguration.self, from: "log")
        let isVerify = invocation.action == .verify
        switch try configuration.read(StorageConfiguration.self, from: "").storage {
        case .embedded:
            let settings = try OfflineSettings(configuration)
            return await logging.withLogger { logger in
                isVerify
                    ? await Verify.run(settings, logger, invocation)
                    : await ReplayCommand.run(settings, logger, invocation)
            }
        case .cluster:
            let settings = try OfflineClusterSettings(configuration)
            return await logging.withLogger { logger in
                isVerify
                    ? await ClusterVerify.run(settings, logger, invocation)
                    : await ClusterReplay.run(settings, logger, invocation)
            }
        }
    }

    /// `weir run`, or the settings that it would have.
    private static func whole(
        _ configuration: Configuration, _ invocation: CommandInvocation<Weir.Action>
    ) async throws -> ExitCode {
        let logging = try configuration.read(LogConfiguration.self, from: "log")
        let pipeline = try configuration.read(PipelineConfiguration.self, from: "")
        switch pipeline.storage {
        case .cluster:
            let settings = try ClusterSettings(all: configuration, pipeline)
            if invocation.action == .run { return await ClusterRun.run(settings, logging) }
        case .embedded:
            let settings = try EmbeddedSettings(configuration)
            if invocation.action == .run { return await Run.run(settings, logging) }
        }
        Output.write(configuration.report())
        return .success
    }

    /// The key that says which others count.
    private struct StorageConfiguration: ConfigurationComponent {
        static let keys: [any DeclaredConfigurationKey] = [PipelineConfiguration.storage]

        let storage: PipelineConfiguration.Storage

        init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
            storage = try reader.read(PipelineConfiguration.storage)
        }
    }

    /// How many partitions topics are made with.
    private struct PartitionsConfiguration: ConfigurationComponent {
        static let keys: [any DeclaredConfigurationKey] = [PipelineConfiguration.partitions]

        let partitions: Int?

        init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
            partitions = try reader.read(PipelineConfiguration.partitions)
        }
    }
}

extension LogConfiguration {
    /// Runs a command that ends by itself, with a logger to standard error.
    func withLogger(_ body: (Logger) async -> ExitCode) async -> ExitCode {
        let sink = BoundedLogSink(format: format)
        let code = await body(Logger(label: "weir", output: LogOutput(format: format, to: sink), level: level))
        _ = sink.flush(within: .seconds(1))
        return code
    }
}
