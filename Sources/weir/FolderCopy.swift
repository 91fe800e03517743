import AsyncPrimitives
import ChangeLog
import Glibc
import SQLite
import SQLiteChangeLog

/// A copy of a data folder whose process may be running: streams, tables and, last, the log.
///
/// Each file is copied as of one moment; what the first ones hold came from a log that only grows, so the log's copy
/// has it, too.
enum FolderCopy {
    /// Why the copy could not be made.
    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Makes a copy for a body, and removes it afterwards.
    static func with<Value: Sendable>(
        _ settings: OfflineSettings, in scratch: String, _ body: (OfflineSettings) async throws -> Value
    ) async throws -> Value {
        let folder = scratch + "/verify-copy"
        // What a run left that was ended on the way.
        try remove(folder)
        guard mkdir(folder, 0o700) == 0 else {
            throw Failure(description: "\(folder) cannot be made: \(String(cString: strerror(errno)))")
        }
        let result = await Result.capturing {
            for name in names where DatabaseFiles(path: "\(settings.data)/\(name)").exists {
                try await DatabaseCopy.make(of: "\(settings.data)/\(name)", at: "\(folder)/\(name)")
            }
            return try await body(settings.moved(to: folder))
        }
        try remove(folder)
        return try result.get()
    }

    private static var names: [String] {
        SQLiteChangeLogConfiguration.partitionRange.map { "fanout-\($0 - 1).db" } + ["tables.db", "log.db"]
    }

    private static func remove(_ folder: String) throws {
        for name in names { try DatabaseFiles(path: "\(folder)/\(name)").remove() }
        for (name, remove) in [("\(folder)/lock", unlink), (folder, rmdir)] where remove(name) != 0 && errno != ENOENT {
            throw Failure(description: "\(name) cannot be removed: \(String(cString: strerror(errno)))")
        }
    }
}
