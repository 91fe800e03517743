import Glibc
import RecordStore
import SQLite

/// Tells a store's file from others, and makes a new one.
enum StoreFile {
    /// Refuses a file that is not a store's before anything in it is touched.
    static func check(path: String, options: ConnectionOptions) async throws {
        guard access(path, F_OK) == 0 else { return }
        let reader = try await DatabaseReaderPool.open(path: path, count: 1, options: options)
        do {
            _ = try await reader.read { connection in try isNew(connection) }
        } catch {
            try await reader.close()
            throw error
        }
        try await reader.close()
    }

    /// Makes the store's own tables where the file is empty, and what an older format lacks; inside a transaction.
    static func create(_ connection: Connection) throws {
        guard try isNew(connection) else {
            if try connection.userVersion() == 1 {
                try connection.execute(SystemTables.history)
                try connection.setUserVersion(SystemTables.format)
            }
            return
        }
        for (_, sql) in SystemTables.all { try connection.execute(sql) }
        try connection.execute("PRAGMA application_id = \(SystemTables.applicationID)")
        try connection.setUserVersion(SystemTables.format)
    }

    /// Whether the file is empty.
    ///
    /// - Throws: `RecordStoreError` where it is another application's, or of a format that this code does not know.
    private static func isNew(_ connection: Connection) throws -> Bool {
        let application = try integer("PRAGMA application_id", connection)
        let format = try integer("PRAGMA user_version", connection)
        let objects = try integer("SELECT count(*) FROM sqlite_schema", connection)
        if application == 0 && format == 0 && objects == 0 { return true }
        guard application == Int64(SystemTables.applicationID) else {
            throw RecordStoreError(
                .incompatibleTables,
                message: "\(connection.path) is an SQLite file of another application; name another path for the "
                    + "tables")
        }
        guard format <= Int64(SystemTables.format) else {
            throw RecordStoreError(
                .incompatibleTables,
                message: "\(connection.path) is in format \(format) of a newer Weir, this one knows format "
                    + "\(SystemTables.format); run the newer version, or name another path and let the tables be made "
                    + "again")
        }
        return false
    }

    private static func integer(_ sql: String, _ connection: Connection) throws -> Int64 {
        var statement = try connection.prepare(sql)
        guard try statement.step() else {
            throw RecordStoreError(.corrupt, message: "\(connection.path): \(sql) gave no row")
        }
        return try statement.integer(at: 0)
    }
}
