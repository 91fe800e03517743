import ChangeLog
import Commands
import Configuration
import Control
import EmbeddedPipeline
import Glibc
import Observability
import PostgresRecordStore
import RecordStore
import SQLiteRecordStore
import SyncModel
import Verification

/// `weir replay`.
enum ReplayCommand {
    private static let into = CommandOption(
        "into", .required("DIR"), "Make the tables in this folder, which has none; made when missing.")
    private static let replace = CommandOption(
        "replace", .none, "Put the new tables in the place of those of the data folder, which are kept aside.")
    private static let resume = CommandOption(
        "resume", .none,
        "On a cluster: go on with tables that hold something, of a replay that was ended or in other databases.")
    private static let options = [into, replace, resume]

    static let command = Command(
        "replay", "Rebuild the tables from the log.", Weir.Action(run), options: options + OfflineSettings.options,
        discussion: """
            Orders the topic changes again, up to the newest published result, from which weir run or weir ordering continues.
            Works on a data folder whose process has stopped, and needs one of --into and --replace: with --replace the old
            tables and streams are moved to the folder replaced-1 (2, 3, ...) beside them, and the streams are rebuilt at the
            next start. With storage cluster, while no ordering process runs, rebuilds the tables in empty databases.
            """)

    /// Why the tables were not made, or not replaced.
    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private static func run(_ invocation: Invocation) async throws -> ExitCode {
        let settings = try Settings.load(invocation, except: options, OfflineSettings.init).settings
        let into = invocation.option(into.name)?.value
        let replaces = invocation.option(replace.name) != nil
        let resumes = invocation.option(resume.name) != nil
        return try await settings.log.withLogger { logger in
            let replay = Replaying(settings: settings, logger: logger)
            switch settings.backend {
            case .embedded(let folder):
                if resumes { throw UsageError("--resume is for a cluster (storage: cluster)", of: "replay") }
                guard (into != nil) != replaces else {
                    throw UsageError("weir replay needs either --into DIR or --replace", of: "replay")
                }
                return await report {
                    try await StoppedFolder.with(folder) { stopped in
                        if let into { return try await make(in: into, stopped, replay) }
                        return try await replace(stopped, replay)
                    }
                }
            case .cluster(let cluster):
                if into != nil || replaces {
                    throw UsageError(
                        "--\(into == nil ? replace.name : self.into.name) is for a data folder; on a cluster empty tables "
                            + "are made in the databases that postgres.shards names", of: "replay")
                }
                return await report { try await make(in: cluster, replay, resumes: resumes) }
            }
        }
    }

    private static func report(_ body: () async throws -> ExitCode) async -> ExitCode {
        do {
            return try await body()
        } catch let error as RecordStoreError where error.code == .fenced {
            Output.complain(
                "weir replay failed: \(error): stop the ordering processes first; what was made can be kept, with "
                    + "--resume")
        } catch {
            Output.complain("weir replay failed: \(error)")
        }
        return .failure
    }

    private static func conclude(_ conclusion: [Report].Conclusion) -> ExitCode {
        guard conclusion != .equal else { return .success }
        Output.write("The log differs from what ordering makes of it: see docs/operations.md, Verifying.")
        return .failure
    }

    private static func make(
        in folder: String, _ stopped: StoppedFolder, _ replay: Replaying
    ) async throws -> ExitCode {
        try createFolder(folder)
        let files = DatabaseFiles(path: folder + "/tables.db")
        guard !files.exists else {
            throw Failure(description: "\(files.path) exists already: name a folder without tables")
        }
        let conclusion = try await replay(stopped, into: files).write()
        Output.write("The tables are in \(files.path).")
        return conclude(conclusion)
    }

    private static func replace(_ stopped: StoppedFolder, _ replay: Replaying) async throws -> ExitCode {
        let data = stopped.settings.folder
        let files = DatabaseFiles(path: data + "/replay-tables.db")
        // An interrupted run may have left some.
        try files.remove()
        let conclusion = try await replay(stopped, into: files).write()
        guard conclusion == .equal else {
            try files.remove()
            Output.write("Nothing was replaced.")
            return conclude(conclusion)
        }
        let aside = try createAside(in: data)
        let streams = (0..<stopped.control.history.partitions).map { "fanout-\($0).db" }
        // Until the last step there are no tables, which a start would rebuild.
        for name in ["tables.db"] + streams {
            try DatabaseFiles(path: "\(data)/\(name)").move(to: "\(aside)/\(name)")
        }
        try files.move(to: stopped.settings.store.path)
        Output.write("The tables were replaced; the old ones and the streams are in \(aside).")
        return .success
    }

    /// Creates a folder for what is replaced.
    private static func createAside(in data: String) throws(Failure) -> String {
        var number = 1
        while true {
            let path = "\(data)/replaced-\(number)"
            if mkdir(path, 0o700) == 0 { return path }
            guard errno == EEXIST else {
                throw Failure(description: "\(path) cannot be made: \(String(cString: strerror(errno)))")
            }
            number += 1
        }
    }

    private static func make(
        in cluster: ClusterSettings, _ replay: Replaying, resumes: Bool
    ) async throws -> ExitCode {
        let reports = try await OpenedCluster.with(cluster, isReadOnly: false, replay.logger) { cluster in
            if !resumes, let table = try await cluster.tables.firstContent() {
                throw Failure(
                    description:
                        "\(table) holds something, and tables are made from nothing: name an empty database or "
                        + "schema, or continue at the position of these tables with --resume")
            }
            return try await replay(cluster.log, cluster.control, into: cluster.tables)
        }
        let conclusion = reports.write()
        Output.write("The tables are complete; weir ordering continues from there.")
        return conclude(conclusion)
    }
}

/// Orders `changes` into tables, from the position that they have.
private struct Replaying: Sendable {
    let settings: OfflineSettings
    let logger: Logger

    func callAsFunction(_ stopped: StoppedFolder, into files: DatabaseFiles) async throws -> [Report] {
        try await stopped.withTables(at: files.path) { try await self(stopped.log, stopped.control, into: $0) }
    }

    func callAsFunction(
        _ log: some ChangeLog, _ control: ControlTopic, into tables: some RecordStore
    ) async throws -> [Report] {
        var total: Int64 = 0
        for partition in 0..<control.history.partitions {
            let range = try await log.range(of: TopicPartition(.changes, partition))
            guard range.start == 0 else { throw TruncatedTopic(partition: partition, start: range.start) }
            total += range.end - (try await tables.position(of: partition)?.state.nextOffset ?? 0)
        }
        return try await withProgress("Replaying", total: Int(max(total, 0))) { bar in
            try await Replay(settings.source(log, control, logger, bar), into: tables).run()
        }
    }

    private struct TruncatedTopic: Error, CustomStringConvertible {
        let partition: Int
        let start: Int64

        var description: String {
            "changes[\(partition)] begins at offset \(start): restore the log, which must hold it whole"
        }
    }
}
