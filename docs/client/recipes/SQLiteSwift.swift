import Foundation
import SQLite
import WeirClient

/// SQLite.swift and Weir on one file.
final class AppDatabase {
    private let items = Table("item")
    private let id = SQLite.Expression<String>("id")
    private let title = SQLite.Expression<String>("title")

    private let connection: Connection
    let weir: Weir

    init(_ file: URL) async throws {
        connection = try Connection(file.path)
        // Otherwise a write fails at once while Weir, or another process, writes.
        connection.busyTimeout = 5
        try connection.execute("PRAGMA journal_mode = WAL; PRAGMA temp_store = MEMORY")
        try connection.run(
            items.create(ifNotExists: true) { table in
                table.column(id, primaryKey: true)
                table.column(title)
            })
        weir = try await Weir.open(file, tables: ["item"])
    }

    /// Written with SQLite.swift, and captured.
    func add(_ name: String) throws {
        try connection.run(items.insert(id <- UUID().uuidString.lowercased(), title <- name))
    }

    func titles() throws -> [String] {
        try connection.prepare(items.order(title)).map { $0[title] }
    }

    /// Shows the titles, and again after each write of Weir's; update hooks of the connection do not see these.
    func watch(_ show: ([String]) -> Void) async throws {
        let written = weir.writtenTables
        show(try titles())
        for await tables in written where tables.contains("item") { show(try titles()) }
    }
}
