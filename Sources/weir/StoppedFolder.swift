import ChangeLog
import Control
import Observability
import RecordStore
import SQLiteChangeLog
import SQLiteRecordStore
import SyncModel
import Verification

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A data folder whose process has stopped, for commands that work on its log: locked, so that no process starts
/// meanwhile.
struct StoppedFolder: Sendable {
    private let folder: DataFolder
    let log: SQLiteChangeLog
    let control: ControlTopic
    private let settings: OfflineSettings

    /// Opens the log for a body, and closes it afterwards.
    static func with<Value: Sendable>(
        _ settings: OfflineSettings, _ body: (StoppedFolder) async throws -> Value
    ) async throws -> Value {
        let folder = try DataFolder(existing: settings.data)
        let log = try await SQLiteChangeLog(settings.changeLog)
        let result = await Result.capturing {
            let control = try await ControlTopic.existing(in: log)
            return try await body(StoppedFolder(folder: folder, log: log, control: control, settings: settings))
        }
        try await log.close()
        return try result.get()
    }

    /// Opens tables of the log's history for a body, and closes them afterwards.
    func withTables<Value: Sendable>(
        at path: String, _ body: (SQLiteRecordStore) async throws -> Value
    ) async throws -> Value {
        var configuration = settings.store
        configuration.path = path
        let store = try await SQLiteRecordStore.open(configuration)
        let result = await Result.capturing {
            try await store.prepare(control.schemas, epoch: control.history.epoch)
            return try await body(store)
        }
        await store.close()
        return try result.get()
    }
}

/// A database of the data folder with the files that SQLite keeps beside it.
struct DatabaseFiles {
    /// Why a file could not be moved or removed.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let path: String

    private var names: [String] { [path, path + "-wal", path + "-shm"] }

    /// Whether the database is there.
    var exists: Bool { access(path, F_OK) == 0 }

    /// Removes what is there.
    func remove() throws(Failure) {
        for name in names where unlink(name) != 0 && errno != ENOENT {
            throw Failure(description: "\(name) cannot be removed: \(String(cString: strerror(errno)))")
        }
    }

    /// Gives what is there another name, which must be free.
    func move(to other: String) throws(Failure) {
        for (name, target) in zip(names, DatabaseFiles(path: other).names) {
            guard rename(name, target) == 0 || errno == ENOENT else {
                throw Failure(
                    description: "\(name) cannot be moved to \(target): \(String(cString: strerror(errno)))")
            }
        }
    }
}

/// Reports on standard output.
enum ReportText {
    /// Writes what was found, and what it comes to.
    ///
    /// - Returns: whether anything differs, or could not be said.
    static func write(_ reports: [Report]) -> Conclusion {
        var outcome = Conclusion.equal
        for report in reports {
            Output.write(report.partition.map { "partition \($0)" } ?? "all partitions")
            for line in report.lines {
                let subject = line.subject.padded(to: 9)
                switch line.finding {
                case .equal(let text): Output.write("  \(subject) equal: \(text)")
                case .different(let first, let count):
                    let more = count > 1 ? " (and \(count - 1) more)" : ""
                    Output.write("  \(subject) DIFFERENT: \(first)\(more)")
                    outcome = .different
                case .unknown(let text):
                    Output.write("  \(subject) cannot say: \(text)")
                    if outcome == .equal { outcome = .unknown }
                }
            }
        }
        return outcome
    }
}

/// What all reports together come to.
enum Conclusion {
    case equal, different, unknown
}

extension String {
    fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
