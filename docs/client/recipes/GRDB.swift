import Foundation
import GRDB
import WeirClient

struct Item: Codable, FetchableRecord, PersistableRecord {
    var id: String
    var title: String
}

/// GRDB and Weir on one file.
struct AppDatabase: Sendable {
    let pool: DatabasePool
    let weir: Weir

    static func open(_ file: URL) async throws -> AppDatabase {
        var configuration = Configuration()
        // By default a write fails at once while Weir, or another process, writes.
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA temp_store = MEMORY") }
        let pool = try DatabasePool(path: file.path, configuration: configuration)
        let migrator = migrator
        let weir: Weir
        if try await pool.read({ try migrator.hasCompletedMigrations($0) }) {
            weir = try await Weir.open(file, tables: ["item"])
        } else {
            weir = try await Weir.migrate(file, tables: ["item"]) { try migrator.migrate(pool) }
        }
        return AppDatabase(pool: pool, weir: weir)
    }

    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("item") { db in
            try db.create(table: "item") { table in
                table.primaryKey("id", .text)
                table.column("title", .text).notNull()
            }
        }
        return migrator
    }

    /// Notifies GRDB's observations of what Weir has written, in a task that runs as long as the app.
    func notifyObservations() async throws {
        for await tables in weir.writtenTables {
            try await pool.write { db in
                for table in tables { try db.notifyChanges(in: Table(table)) }
            }
        }
    }

    /// Written with GRDB, and captured.
    func add(_ title: String) async throws {
        let item = Item(id: UUID().uuidString.lowercased(), title: title)
        try await pool.write { try item.insert($0) }
    }

    /// Observed with GRDB: what the app writes, and what comes from other devices.
    func items() -> AsyncValueObservation<[Item]> {
        ValueObservation.tracking { try Item.order(Column("title")).fetchAll($0) }.values(in: pool)
    }

    /// Which items are on this device alone, from a view of Weir's; observed in the same way.
    func pending() -> AsyncValueObservation<Set<String>> {
        ValueObservation.tracking {
            try String.fetchSet($0, sql: "SELECT id FROM weir_item_state WHERE is_pending")
        }.values(in: pool)
    }
}
