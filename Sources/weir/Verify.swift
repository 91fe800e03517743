import AsyncPrimitives
import ChangeLog
import Commands
import Control
import Glibc
import Observability
import SQLiteChangeLog
import SQLiteRecordStore
import SyncModel
import Verification

/// `weir verify`.
enum Verify {
    static let scratch = CommandOption(
        "scratch", .required("DIR"),
        "Folder for the tables that are made for the comparison, as large as the real ones; by default the data folder."
    )

    static let copy = CommandOption(
        "copy", .none, "Verify a copy made in the scratch folder: for a folder whose process runs.")

    /// Options that are no settings.
    static let options = [scratch, copy, ClusterVerify.partitions]

    static let discussion = """
        Works on a data folder whose process has stopped, or on a backup; with --copy on one whose process runs, up to the
        moment of the copy, which takes as much room as the folder and is removed afterwards. Nothing is changed. Compares changes with
        the uploads that are still kept, ordered with changes, and tables and streams with what ordering makes of changes
        up to the message where each stands. With storage cluster compares ordered and the tables in Postgres while all
        processes go on. Exit codes: 0 equal, 1 different, 2 cannot say.
        """

    static func run(
        _ settings: OfflineSettings, _ logger: Logger, _ invocation: CommandInvocation<Weir.Action>
    ) async -> ExitCode {
        guard invocation.option(ClusterVerify.partitions.name) == nil else {
            Output.complain(
                "Error: --partitions is for a cluster (storage: cluster)\nSee \"weir verify --help\".")
            return .usage
        }
        let scratch = invocation.option(scratch.name)?.value ?? settings.data
        do {
            let reports =
                invocation.option(copy.name) == nil
                ? try await compare(settings, logger, scratch: scratch)
                : try await FolderCopy.with(settings, in: scratch) { try await compare($0, logger, scratch: scratch) }
            switch ReportText.write(reports) {
            case .equal:
                Output.write("Equal: tables and streams are what the log makes of them.")
                return .success
            case .different:
                Output.write("Different: see docs/operations.md, Verifying, for what to do.")
                return .failure
            case .unknown:
                Output.write("Cannot say: what was compared is equal, not everything could be.")
                return .undecided
            }
        } catch let failure as DataFolder.Failure {
            Output.complain(
                "weir verify cannot say: \(failure); while a process runs, --copy verifies a copy of its folder")
            return .undecided
        } catch {
            Output.complain("weir verify cannot say: \(error)")
            return .undecided
        }
    }

    private static func compare(
        _ settings: OfflineSettings, _ logger: Logger, scratch: String
    ) async throws -> [Report] {
        try await StoppedFolder.with(settings) { try await compare($0, settings, logger, scratch: scratch) }
    }

    private static func compare(
        _ folder: StoppedFolder, _ settings: OfflineSettings, _ logger: Logger, scratch: String
    ) async throws -> [Report] {
        let files = DatabaseFiles(path: scratch + "/verify-tables.db")
        // What a run left that was ended on the way.
        try files.remove()
        let result = await Result.capturing {
            try await folder.withTables(at: files.path) { made in
                // Opening tables would make them.
                guard DatabaseFiles(path: settings.store.path).exists else {
                    return try await run(folder, settings, logger, tables: nil, scratch: made)
                }
                return try await folder.withTables(at: settings.store.path) { tables in
                    try await run(folder, settings, logger, tables: tables, scratch: made)
                }
            }
        }
        try files.remove()
        return try result.get()
    }

    private static func run(
        _ folder: StoppedFolder, _ settings: OfflineSettings, _ logger: Logger, tables: SQLiteRecordStore?,
        scratch: SQLiteRecordStore
    ) async throws -> [Report] {
        let bar = ProgressBar("Recomputing", total: nil, unit: "messages")
        let source = ReplaySource(
            log: folder.log, history: folder.control.history, schemas: folder.control.schemas,
            configuration: settings.ordering, logger: logger
        ) { bar.advance(by: $0) }
        let verifier = Verifier(
            source, tables: tables, scratch: scratch, streams: settings.data, limits: settings.limits.limits)
        bar.expect(try await verifier.work)
        let result = await Result.capturing { try await verifier.run() }
        bar.finish()
        return try result.get()
    }
}
