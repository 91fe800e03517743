import Glibc
import RecordStore
import RelationalTables
import SQLite

/// Recognizes a store's file, and initializes a new one.
enum StoreFile {
    /// Rejects a file of another application before anything in it is changed.
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

    /// Creates the system tables of an empty file; inside a transaction.
    static func create(_ connection: Connection) throws {
        guard try isNew(connection) else { return }
        for (_, sql) in SystemTables.all { try connection.execute(sql) }
        try connection.execute("PRAGMA application_id = \(SystemTables.applicationID)")
        try connection.setUserVersion(SystemTables.format)
    }

    /// Whether the file is empty.
    ///
    /// - Throws: `RecordStoreError` if it belongs to another application, or has another format.
    private static func isNew(_ connection: Connection) throws -> Bool {
        let application = try connection.integer("PRAGMA application_id")
        let format = try connection.userVersion()
        let objects = try connection.integer("SELECT count(*) FROM sqlite_schema")
        if application == 0 && format == 0 && objects == 0 { return true }
        guard application == Int64(SystemTables.applicationID) else {
            throw RecordStoreError.incompatible(
                "the file is an SQLite database of another application; set another path for the tables",
                database: connection.path)
        }
        guard format <= SystemTables.format else {
            throw RecordStoreError.incompatible(
                "the file has format \(format) of a newer Weir, this one knows format \(SystemTables.format); run the newer "
                    + "version, or set another path, where the tables are rebuilt", database: connection.path)
        }
        guard format == SystemTables.format else {
            throw RecordStoreError.incompatible(
                "the file has format \(format) of an earlier Weir, which did not count what owners have; move it away, or set "
                    + "another path, and the tables are rebuilt from the log", database: connection.path)
        }
        return false
    }
}
