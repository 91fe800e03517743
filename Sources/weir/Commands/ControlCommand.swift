import AsyncPrimitives
import ChangeLog
import Commands
import Configuration
import Control
import EmbeddedPipeline
import KafkaChangeLog
import Observability

/// What commands share that read `control` and write decisions to it: in Kafka, or in a data folder whose process has stopped.
enum ControlCommand {
    /// Where the log is.
    private struct LogSettings: Sendable {
        let log: LogConfiguration
        let backend: BackendSettings

        init(_ reader: ConfigurationReader) throws(ConfigurationProblem) {
            self.init(reader, in: try reader.choice(\PipelineConfiguration.storage))
        }

        private init(_ reader: ConfigurationReader, in storage: PipelineConfiguration.Storage) {
            log = reader.read()
            switch storage {
            case .embedded: backend = .embedded(EmbeddedSettings(reader))
            case .cluster: backend = .cluster(ClusterSettings(kafka: reader.read()))
            }
        }

        static let options = Settings.schema.options { reader in
            _ = reader.read(\PipelineConfiguration.storage)
            for storage in PipelineConfiguration.Storage.allCases { _ = LogSettings(reader, in: storage) }
        }
    }

    /// The options of such a command.
    static let options = LogSettings.options

    /// Opens the log and its history for a body, and reports what it throws.
    ///
    /// - Parameters:
    ///   - own: options of the command that are no settings.
    ///   - name: the command, for messages.
    static func run(
        _ invocation: Invocation, except own: [CommandOption], as name: String,
        _ body: @Sendable (any ChangeLog, ControlTopic) async throws -> Void
    ) async throws -> ExitCode {
        let settings = try Settings.load(invocation, except: own, LogSettings.init).settings
        return await settings.log.withLogger { logger in
            do {
                switch settings.backend {
                case .embedded(let folder):
                    try await StoppedFolder.with(folder) { try await body($0.log, $0.control) }
                case .cluster(let cluster):
                    let log = try await KafkaChangeLog(cluster.kafka, logger: logger.labeled("kafka"))
                    let result = await Result.capturing {
                        try await body(log, ControlTopic.existing(in: log, shards: nil))
                    }
                    await log.close()
                    try result.get()
                }
                return .success
            } catch {
                let hint = error is DataFolder.Failure ? "; a process that uses it must be stopped first" : ""
                Output.complain("weir \(name): \(error)\(hint)")
                return .failure
            }
        }
    }
}
