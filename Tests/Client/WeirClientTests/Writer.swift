import CWeirSQLite
import Foundation
import TestResources
import Testing
import WeirClient

/// Who runs the statements of an app: triggers are the file's, so it must make no difference.
enum Writer: CaseIterable, Sendable {
    /// The app's connection, which stays open.
    case connection
    /// A connection by the C API, for each call.
    case cAPI
    /// A connection of another process, for each call.
    case process

    /// What a statement of another writer than the app's connection has failed with.
    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    fileprivate static func execute(_ sql: String, _ path: String) throws {
        var connection: OpaquePointer?
        defer { sqlite3_close(connection) }
        guard sqlite3_open(path, &connection) == SQLITE_OK,
            sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK
        else { throw Failed(description: String(cString: sqlite3_errmsg(connection))) }
    }
}

extension SyncedApp {
    /// Runs statements of the app.
    ///
    /// - Parameter sql: with what it needs of the connection's settings, besides those that each connection of the app has.
    func run(_ sql: String, by writer: Writer) async throws {
        switch writer {
        case .connection: try run(sql)
        case .cAPI: try Writer.execute(Self.settings + sql, path)
        case .process:
            let failure = folder.file("failure")
            await #expect(processExitsWith: .success) {
                [path = path as String, sql = Self.settings + sql as String, failure = failure as String] in
                do {
                    try Writer.execute(sql, path)
                } catch {
                    try Data("\(error)".utf8).write(to: URL(fileURLWithPath: failure))
                }
            }
            guard FileManager.default.fileExists(atPath: failure) else { return }
            throw Writer.Failed(description: try String(contentsOfFile: failure, encoding: .utf8))
        }
    }
}
