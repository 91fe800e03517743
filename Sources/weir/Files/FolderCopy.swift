import AsyncPrimitives
import ChangeLog
import EmbeddedPipeline
import Glibc
import SQLite
import SQLiteChangeLog

/// A copy of a data folder whose process may be running: streams, tables and, last, the log.
///
/// Each file is copied as of one moment. What streams and tables hold came from the log, which only grows, so that the log's
/// copy contains it too.
enum FolderCopy {
    /// Why the copy could not be removed.
    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Creates a copy for a body, and removes it afterwards.
    static func with<Value: Sendable>(
        _ settings: EmbeddedSettings, in scratch: String, _ body: (EmbeddedSettings) async throws -> Value
    ) async throws -> Value {
        let folder = scratch + "/verify-copy"
        // An interrupted run may have left one.
        try remove(folder)
        guard mkdir(folder, 0o700) == 0 else {
            throw FolderFailure(path: folder, reason: String(cString: strerror(errno)))
        }
        let result = await Result.capturing {
            for name in names where DatabaseFiles(path: "\(settings.folder)/\(name)").exists {
                try await DatabaseCopy.make(of: "\(settings.folder)/\(name)", at: "\(folder)/\(name)")
            }
            var copy = settings
            copy.move(to: folder)
            return try await body(copy)
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
