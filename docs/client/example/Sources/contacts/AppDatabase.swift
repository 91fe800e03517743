import CSQLite3
import Foundation

/// The app's database, which knows nothing of Weir.
enum AppDatabase {
    struct Failure: Error {
        let message: String
    }

    static let tables = """
        CREATE TABLE IF NOT EXISTS person (id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, email TEXT, birthday TEXT)
        """

    /// Creates the file and its table, where they are missing; an app has its migrations here.
    static func create(_ file: URL) throws {
        var connection: OpaquePointer?
        defer { sqlite3_close(connection) }
        guard sqlite3_open(file.path, &connection) == SQLITE_OK else { throw failure(connection) }
        let sql = "PRAGMA journal_mode = WAL;" + tables
        guard sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK else { throw failure(connection) }
    }

    private static func failure(_ connection: OpaquePointer?) -> Failure {
        Failure(message: String(cString: sqlite3_errmsg(connection)))
    }
}
