import AsyncPrimitives
import ChangeLog
import Commands
import Control
import FanOut
import KafkaChangeLog
import Observability
import Ordering
import PostgresRecordStore
import RecordStore
import SQLiteRecordStore
import SyncModel
import Verification

/// `weir verify` with `storage: cluster`.
enum ClusterVerify {
    static let partitions = CommandOption(
        "partitions", .required("LIST"), "On a cluster: those to verify, as 0-31,40; all by default.")

    static func run(
        _ settings: OfflineClusterSettings, _ logger: Logger, _ invocation: CommandInvocation<Weir.Action>
    ) async -> ExitCode {
        guard invocation.option(Verify.copy.name) == nil else {
            Output.complain(
                "Error: --copy is for a data folder; tables in Postgres are read as of one moment while all goes on"
                    + "\nSee \"weir verify --help\".")
            return .usage
        }
        let list = invocation.option(partitions.name)?.value ?? "all"
        guard let wanted = PartitionSelection(list) else {
            Output.complain("Error: --partitions is all, or numbers and ranges as 0-31,40, not \(list)")
            return .usage
        }
        let scratch = invocation.option(Verify.scratch.name)?.value ?? settings.data
        var settings = settings
        settings.postgres.isReadOnly = true
        do {
            // Held by one command at a time; what one left that was ended on the way is removed by the next.
            let folder = try DataFolder(path: scratch + "/weir-verify", namedBy: "--scratch")
            let reports = try await compare(settings, logger, wanted, in: folder)
            return conclude(reports)
        } catch {
            Output.complain("weir verify cannot say: \(error)")
            return .undecided
        }
    }

    private static func compare(
        _ settings: OfflineClusterSettings, _ logger: Logger, _ wanted: PartitionSelection, in folder: DataFolder
    ) async throws -> [Report] {
        try await OpenedCluster.with(settings, logger) { cluster in
            let (history, schemas) = (cluster.control.history, cluster.control.schemas)
            let numbers = try wanted.numbers(in: history, namedBy: "--partitions")
            for partition in 0..<history.partitions { try files(of: partition, in: folder).remove() }
            let bar = ProgressBar("Recomputing", total: nil, unit: "messages")
            let source = ReplaySource(
                log: cluster.log, history: history, schemas: schemas, configuration: settings.ordering, logger: logger
            ) { bar.advance(by: $0) }
            let verifier = LiveVerifier(source, tables: cluster.tables) { partition, body in
                try await withTables(in: files(of: partition, in: folder), schemas, history, body)
            }
            bar.expect(try await verifier.work(on: numbers))
            let result = await Result.capturing { try await verifier.run(numbers) }
            bar.finish()
            return try result.get()
        }
    }

    private static func files(of partition: Int, in folder: DataFolder) -> DatabaseFiles {
        DatabaseFiles(path: folder.path + "/\(partition).db")
    }

    /// Makes empty tables in a file for a body, and removes them afterwards.
    private static func withTables(
        in files: DatabaseFiles, _ schemas: SchemaHistory, _ history: History,
        _ body: (SQLiteRecordStore) async throws -> Report
    ) async throws -> Report {
        let result = await Result.capturing {
            let store = try await SQLiteRecordStore.open(SQLiteRecordStoreConfiguration(path: files.path))
            let result = await Result.capturing {
                try await store.prepare(schemas, epoch: history.epoch)
                return try await body(store)
            }
            await store.close()
            return try result.get()
        }
        try files.remove()
        return try result.get()
    }

    private static func conclude(_ reports: [Report]) -> ExitCode {
        switch ReportText.write(reports) {
        case .equal:
            Output.write("Equal: the tables are what the log makes of them.")
            return .success
        case .different:
            Output.write("Different: see docs/operations.md, Verifying a cluster, for what to do.")
            return .failure
        case .unknown:
            Output.write("Cannot say: what was compared is equal, not everything could be.")
            return .undecided
        }
    }
}
