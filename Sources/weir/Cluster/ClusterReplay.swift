import AsyncPrimitives
import ChangeLog
import Commands
import Control
import KafkaChangeLog
import Observability
import PostgresRecordStore
import RecordStore
import SyncModel
import Verification

/// `weir replay` with `storage: cluster`.
enum ClusterReplay {
    static let resume = CommandOption(
        "resume", .none,
        "On a cluster: go on with tables that hold something, of a replay that was ended or in other databases.")

    /// Why the tables were not made.
    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    static func run(
        _ settings: OfflineClusterSettings, _ logger: Logger, _ invocation: CommandInvocation<Weir.Action>
    ) async -> ExitCode {
        for option in [ReplayCommand.into, ReplayCommand.replace] where invocation.option(option.name) != nil {
            Output.complain(
                "Error: --\(option.name) is for a data folder; on a cluster empty tables are made in the databases that "
                    + "postgres.shards names\nSee \"weir replay --help\".")
            return .usage
        }
        var settings = settings
        // Whoever asks for tables wants them made.
        settings.postgres.migratesAtStart = true
        let resumes = invocation.option(resume.name) != nil
        do {
            let outcome = ReportText.write(
                try await OpenedCluster.with(settings, logger) { cluster in
                    if !resumes { try await refuseContent(cluster) }
                    return try await replay(cluster, settings, logger)
                })
            Output.write("The tables are made; weir ordering goes on from there.")
            return ReplayCommand.tell(outcome)
        } catch let error as RecordStoreError where error.code == .fenced {
            Output.complain(
                "weir replay failed: \(error): stop the ordering processes first; what was made can be kept, with "
                    + "--resume")
        } catch {
            Output.complain("weir replay failed: \(error)")
        }
        return .failure
    }

    private static func refuseContent(_ cluster: OpenedCluster) async throws {
        guard let place = try await cluster.tables.firstContent() else { return }
        throw Failure(
            description: "\(place) holds something, and tables are made from nothing: name an empty database or "
                + "schema, or go on from where these tables stand with --resume")
    }

    private static func replay(
        _ cluster: OpenedCluster, _ settings: OfflineClusterSettings, _ logger: Logger
    ) async throws -> [Report] {
        var total: Int64 = 0
        for partition in 0..<cluster.control.history.partitions {
            let range = try await cluster.log.rangeFromStart(ofChanges: partition)
            total += range.end - (try await cluster.tables.position(of: partition)?.state.nextOffset ?? 0)
        }
        let bar = ProgressBar("Replaying", total: Int(max(total, 0)), unit: "messages")
        let result = await Result.capturing {
            let source = ReplaySource(
                log: cluster.log, history: cluster.control.history, schemas: cluster.control.schemas,
                configuration: settings.ordering, logger: logger
            ) { bar.advance(by: $0) }
            return try await Replay(source, into: cluster.tables).run()
        }
        bar.finish()
        return try result.get()
    }
}
