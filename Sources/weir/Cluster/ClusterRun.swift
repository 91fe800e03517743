import Commands
import Configuration
import KafkaChangeLog
import Observability
import PostgresRecordStore
import ServiceLifecycle

/// `weir gateway`, `ingest`, `ordering`, `fanout`, and `weir run` with `storage: cluster`: roles on Kafka and Postgres until
/// SIGTERM or SIGINT.
enum ClusterRun {
    /// Runs what the settings are for.
    static func run(_ settings: ClusterSettings, _ logging: LogConfiguration) async -> ExitCode {
        await ServiceRunner.run(logging, settings.operations) { logger, monitoring, stop in
            let storage = monitoring.conditions.storage()
            let folder = try settings.data.map { try DataFolder(path: $0) }
            let parts = try await open(stop) {
                try await ClusterParts.open(settings, condition: storage, logger: logger)
            }
            guard let parts else { return }
            storage.setReady()
            try await serve(parts, stop, logger) {
                try RoleServices(settings: settings, parts: parts, monitoring: monitoring, logger: logger).members()
            }
            withExtendedLifetime(folder) {}
        }
    }

    /// Opens log and tables; `nil` when the process is asked to stop before they are open.
    private static func open(
        _ stop: StopRequest, _ body: @escaping @Sendable () async throws -> ClusterParts
    ) async throws -> ClusterParts? {
        let opening = Task(operation: body)
        stop.handle { _ in opening.cancel() }
        do {
            return try await opening.value
        } catch is CancellationError {
            return nil
        }
    }

    private static func serve(
        _ parts: ClusterParts, _ stop: StopRequest, _ logger: Logger,
        _ members: () throws -> [ServiceGroup.Member]
    ) async throws {
        do {
            let group = ServiceGroup(try members(), logger: logger)
            stop.handle { group.shutDown(reason: $0) }
            try await group.run()
        } catch {
            await parts.close()
            throw error
        }
        await parts.close()
    }
}
