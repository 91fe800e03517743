import Commands
import Configuration
import EmbeddedPipeline
import Operations
import SyncModel

/// `weir run`: the whole pipeline until SIGTERM or SIGINT.
enum RunCommand {
    static let command = Command(
        "run", "Run the whole pipeline in this process, on embedded SQLite.", Weir.Action(run),
        options: Settings.schema.options,
        discussion: """
            Needs nothing but a schema file; data goes to the folder weir-data. With storage cluster the log is in Kafka
            and the tables are in Postgres; the topics must exist.
            """)

    struct RunSettings: Sendable {
        let log: LogConfiguration
        let operations: OperationsConfiguration
        let pipeline: PipelineConfiguration
        let stages: StageSettings
        let backend: BackendSettings

        init(_ reader: ConfigurationReader) throws(ConfigurationProblem) {
            backend = try BackendSettings(reader)
            log = reader.read()
            operations = reader.read()
            pipeline = reader.read()
            stages = StageSettings(reader)
        }
    }

    private static func run(_ invocation: Invocation) async throws -> ExitCode {
        let settings = try Settings.load(invocation, RunSettings.init).settings
        let (pipeline, stages) = (settings.pipeline, settings.stages)
        let conditions: [Condition] =
            switch settings.backend {
            case .embedded: [.streams, .gateway]
            case .cluster: [.history, .streams, .stage(.ordering), .stage(.ingest), .gateway]
            }
        return await ServiceRunner.run(settings.log, settings.operations, conditions: conditions) { process in
            switch settings.backend {
            case .embedded(let embedded):
                let declared = try SchemaFiles.read(pipeline.schema, limits: stages.limits.limits.outcome)
                try await process.serve { [logger = process.logger, monitoring = process.monitoring] _ in
                    try await EmbeddedBackend.open(
                        embedded, pipeline, stages, declaring: declared, logger: logger, monitoring: monitoring)
                } _: {
                    try $0.all(stages, data: pipeline.data)
                }
            case .cluster(let cluster):
                // The lock on the folder of the streams is held until the process ends.
                let folder = try DataFolder(path: pipeline.data)
                try await process.serve { [logger = process.logger] condition in
                    try await ClusterBackend.open(
                        cluster.withDevices(of: stages.gateway, files: stages.faces.files),
                        proposing: .init(pipeline: pipeline, limits: stages.limits), condition: condition,
                        logger: logger)
                } _: {
                    try $0.all(stages, data: nil)
                }
                withExtendedLifetime(folder) {}
            }
        }
    }
}
