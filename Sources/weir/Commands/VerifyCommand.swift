import Commands
import Configuration
import Control
import EmbeddedPipeline
import FanOut
import KafkaChangeLog
import Observability
import PostgresRecordStore
import SQLiteRecordStore
import SyncModel
import Verification

/// `weir verify`.
enum VerifyCommand {
    private static let scratch = CommandOption(
        "scratch", .required("DIR"),
        "Folder for the tables that are made for the comparison, as large as the real ones; by default the data folder."
    )
    private static let copy = CommandOption(
        "copy", .none, "Verify a copy made in the scratch folder: for a folder whose process runs.")
    private static let partitions = CommandOption(
        "partitions", .required("LIST"), "On a cluster: those to verify, as 0-31,40; all by default.")
    private static let options = [scratch, copy, partitions]

    static let command = Command(
        "verify", "Recompute from the log what the pipeline made, and compare.", Weir.Action(run),
        options: options + OfflineSettings.options,
        discussion: """
            Works on a data folder whose process has stopped, or on a backup; with --copy on the folder of a running process, up to
            the moment of the copy, which needs as much space as the folder and is removed afterwards. Nothing is changed.
            Compares changes with the uploads that are still kept, ordered with changes, and tables and streams with what
            ordering derives from changes up to the position of each. With storage cluster compares ordered and the tables in
            Postgres while all processes run. Exit codes: 0 equal, 1 different, 2 undecided.
            """)

    private static func run(_ invocation: Invocation) async throws -> ExitCode {
        let settings = try Settings.load(invocation, except: options, OfflineSettings.init).settings
        let named = invocation.option(scratch.name)?.value
        let scratch = named ?? settings.data
        let isCopied = invocation.option(copy.name) != nil
        let list = invocation.option(partitions.name)?.value
        return try await settings.log.withLogger { logger in
            switch settings.backend {
            case .embedded(let folder):
                guard list == nil else {
                    throw UsageError("--partitions is for a cluster (storage: cluster)", of: "verify")
                }
                let hint = "; while a process runs, --copy verifies a copy of its folder"
                return await conclude(on: "tables and streams are", see: "Verifying", ifLocked: hint) {
                    // A missing data folder is reported, and not created.
                    if named != nil { try createFolder(scratch) }
                    guard isCopied else { return try await compare(folder, settings, logger, scratch: scratch) }
                    return try await FolderCopy.with(folder, in: scratch) {
                        try await compare($0, settings, logger, scratch: scratch)
                    }
                }
            case .cluster(let cluster):
                guard !isCopied else {
                    throw UsageError(
                        "--copy is for a data folder; tables in Postgres are compared while all processes run",
                        of: "verify")
                }
                guard let selection = PartitionSelection(list ?? "all") else {
                    throw UsageError(
                        "--partitions is all, or numbers and ranges as 0-31,40, not \(list ?? "")", of: "verify")
                }
                return await conclude(on: "the tables are", see: "Verifying a cluster") {
                    try await compare(cluster, settings, logger, selection, scratch: scratch)
                }
            }
        }
    }

    private static func conclude(
        on what: String, see section: String, ifLocked hint: String = "", _ compare: () async throws -> [Report]
    ) async -> ExitCode {
        do {
            switch try await compare().write() {
            case .equal:
                Output.write("Equal: \(what) what the log makes of them.")
                return .success
            case .different:
                Output.write("Different: see docs/operations.md, \(section), for what to do.")
                return .failure
            case .unknown:
                Output.write("Cannot say: what was compared is equal, not everything could be.")
                return .undecided
            }
        } catch {
            Output.complain("weir verify cannot say: \(error)" + (error is DataFolder.Failure ? hint : ""))
        }
        return .undecided
    }

    private static func compare(
        _ embedded: EmbeddedSettings, _ settings: OfflineSettings, _ logger: Logger, scratch: String
    ) async throws -> [Report] {
        try await StoppedFolder.with(embedded) { folder in
            let files = DatabaseFiles(path: scratch + "/verify-tables.db")
            return try await files.whileTemporary {
                try await folder.withTables(at: files.path) { recomputed in
                    func verify(_ tables: SQLiteRecordStore?) async throws -> [Report] {
                        try await withProgress("Recomputing") { bar in
                            let source = settings.source(folder.log, folder.control, logger, bar)
                            let verifier = Verifier(
                                source, tables: tables, scratch: recomputed, streams: embedded.folder)
                            bar.expect(try await verifier.work)
                            return try await verifier.run()
                        }
                    }
                    // Opening tables would make them.
                    guard DatabaseFiles(path: embedded.store.path).exists else { return try await verify(nil) }
                    return try await folder.withTables(at: embedded.store.path, verify)
                }
            }
        }
    }

    private static func compare(
        _ cluster: ClusterSettings, _ settings: OfflineSettings, _ logger: Logger, _ selection: PartitionSelection,
        scratch: String
    ) async throws -> [Report] {
        try createFolder(scratch)
        // Locked, so that only one command uses it; the next one removes what an interrupted one left.
        let folder = try DataFolder(path: scratch + "/weir-verify", namedBy: "--scratch")
        @Sendable func files(of partition: Int) -> DatabaseFiles {
            DatabaseFiles(path: "\(folder.path)/\(partition).db")
        }
        return try await OpenedCluster.with(cluster, isReadOnly: true, logger) { cluster in
            let control = cluster.control
            let numbers = try selection.numbers(in: control.history, namedBy: "--partitions")
            for partition in 0..<control.history.partitions { try files(of: partition).remove() }
            return try await withProgress("Recomputing") { bar in
                let source = settings.source(cluster.log, control, logger, bar)
                let verifier = LiveVerifier(source, tables: cluster.tables) { partition, body in
                    let files = files(of: partition)
                    return try await files.whileTemporary {
                        try await SQLiteRecordStore.with(.init(path: files.path), control, body)
                    }
                }
                bar.expect(try await verifier.work(on: numbers))
                return try await verifier.run(numbers)
            }
        }
    }
}
