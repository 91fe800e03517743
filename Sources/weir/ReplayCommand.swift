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

/// `weir replay`.
enum ReplayCommand {
    static let into = CommandOption(
        "into", .required("DIR"), "Make the tables in this folder, which has none; made when missing.")
    static let replace = CommandOption(
        "replace", .none, "Put the new tables in the place of those of the data folder, which are kept aside.")

    /// Options that are no settings.
    static let options = [into, replace, ClusterReplay.resume]

    static let discussion = """
        Orders the topic changes anew, up to the newest result that was published; weir run or weir ordering goes on from
        there. Works on a data folder whose process has stopped, and needs one of --into and --replace: with --replace the old
        tables and streams move to the folder replaced-1 (2, 3, ...) beside them, and the streams are made again at the next
        start. With storage cluster, while no ordering process runs, makes the tables in empty databases.
        """

    /// Why the tables were not made, or not put in place.
    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    static func run(
        _ settings: OfflineSettings, _ logger: Logger, _ invocation: CommandInvocation<Weir.Action>
    ) async -> ExitCode {
        guard invocation.option(ClusterReplay.resume.name) == nil else {
            Output.complain("Error: --resume is for a cluster (storage: cluster)\nSee \"weir replay --help\".")
            return .usage
        }
        let folder = invocation.option(into.name)?.value
        guard (folder != nil) != (invocation.option(replace.name) != nil) else {
            Output.complain("Error: weir replay needs either --into DIR or --replace\nSee \"weir replay --help\".")
            return .usage
        }
        do {
            return try await StoppedFolder.with(settings) { stopped in
                if let folder { return try await make(in: folder, stopped, settings, logger) }
                return try await replace(stopped, settings, logger)
            }
        } catch {
            Output.complain("weir replay failed: \(error)")
            return .failure
        }
    }

    private static func make(
        in folder: String, _ stopped: StoppedFolder, _ settings: OfflineSettings, _ logger: Logger
    ) async throws -> ExitCode {
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else {
            throw Failure(description: "\(folder) cannot be made: \(String(cString: strerror(errno)))")
        }
        let files = DatabaseFiles(path: folder + "/tables.db")
        guard !files.exists else {
            throw Failure(description: "\(files.path) is there already: name a folder without tables")
        }
        let outcome = ReportText.write(try await replay(into: files, stopped, settings, logger))
        Output.write("The tables are in \(files.path).")
        return tell(outcome)
    }

    private static func replace(
        _ stopped: StoppedFolder, _ settings: OfflineSettings, _ logger: Logger
    ) async throws -> ExitCode {
        let files = DatabaseFiles(path: settings.data + "/replay-tables.db")
        // What a run left that was ended on the way.
        try files.remove()
        let outcome = ReportText.write(try await replay(into: files, stopped, settings, logger))
        guard outcome == .equal else {
            try files.remove()
            Output.write("Nothing was replaced.")
            return tell(outcome)
        }
        let aside = try madeAside(in: settings.data)
        let streams = (0..<stopped.control.history.partitions).map { "fanout-\($0).db" }
        // Until the last step there are no tables, which a start would make again.
        for name in ["tables.db"] + streams {
            try DatabaseFiles(path: "\(settings.data)/\(name)").move(to: "\(aside)/\(name)")
        }
        try files.move(to: settings.store.path)
        Output.write("The tables were replaced; the old ones and the streams are in \(aside).")
        return .success
    }

    private static func replay(
        into files: DatabaseFiles, _ stopped: StoppedFolder, _ settings: OfflineSettings, _ logger: Logger
    ) async throws -> [Report] {
        var total: Int64 = 0
        for partition in 0..<stopped.control.history.partitions {
            total += try await stopped.log.rangeFromStart(ofChanges: partition).end
        }
        let bar = ProgressBar("Replaying", total: Int(total), unit: "messages")
        let result = await Result.capturing {
            try await stopped.withTables(at: files.path) { store in
                let source = ReplaySource(
                    log: stopped.log, history: stopped.control.history, schemas: stopped.control.schemas,
                    configuration: settings.ordering, logger: logger
                ) { bar.advance(by: $0) }
                return try await Replay(source, into: store).run()
            }
        }
        bar.finish()
        return try result.get()
    }

    static func tell(_ outcome: Conclusion) -> ExitCode {
        guard outcome != .equal else { return .success }
        Output.write("The log differs from what ordering makes of it: see docs/operations.md, Verifying.")
        return .failure
    }

    /// A new folder for what is replaced.
    private static func madeAside(in data: String) throws(Failure) -> String {
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
}

/// A topic that must be whole and is not.
private struct CutLog: Error, CustomStringConvertible {
    let description: String
}

extension ChangeLog {
    /// The offsets of a partition of `changes`, which must be whole.
    func rangeFromStart(ofChanges partition: Int) async throws -> LogRange {
        let range = try await range(of: TopicPartition(.changes, partition))
        guard range.start == 0 else {
            throw CutLog(
                description: "changes[\(partition)] begins at offset \(range.start): restore the log, which must hold "
                    + "it whole")
        }
        return range
    }
}
