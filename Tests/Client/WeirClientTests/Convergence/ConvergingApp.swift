import Foundation
import TestResources
import WeirClient

/// An app on one device of a convergence run.
final class ConvergingApp {
    private static let sql = """
        CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT);
        CREATE TABLE item (
            id INTEGER PRIMARY KEY, title TEXT, note, slot TEXT UNIQUE, list TEXT REFERENCES list (id) ON DELETE CASCADE);
        CREATE TABLE pic (id BLOB PRIMARY KEY NOT NULL, name TEXT, taken DATETIME) WITHOUT ROWID;
        """
    private static let migration = """
        ALTER TABLE item ADD COLUMN extra TEXT;
        CREATE TABLE tag (id TEXT PRIMARY KEY NOT NULL, name TEXT);
        """
    private static let oldTables = ["list", "item", "pic"]
    static let serverTables = [
        "list": ["name": "text"], "item": ["title": "text", "note": "text", "slot": "text", "list": "text"],
        "pic": ["name": "text", "taken": "timestamp"],
    ]

    let number: Int
    private(set) var device: Device
    private(set) var isUpgraded = false
    let network: FaultyTransport
    private let slice: Int
    private let resolver: ConvergenceScript.Resolver
    /// How often it was killed.
    ///
    /// The lease of a killed process, which is this one, would be waited for.
    private var kills = 0
    /// Counts late answers.
    private let late = Counter()

    init(_ number: Int, _ script: ConvergenceScript, _ server: ContractServer) async throws {
        self.number = number
        slice = script.slice
        resolver = number < script.resolvers.count ? script.resolvers[number] : .none
        network = FaultyTransport(server, percent: script.faults, seed: script.seed &* 31 &+ UInt64(number))
        device = try await Device(Self.sql, tables: Self.oldTables)
        try enforceForeignKeys()
    }

    /// As most apps do; Weir's own connection enforces none.
    private func enforceForeignKeys() throws {
        if number > 0 { try device.run("PRAGMA foreign_keys = ON") }
    }

    private var tables: [String] { Self.oldTables + (isUpgraded ? ["tag"] : []) }

    func attach(_ transport: any Transport) async throws {
        var options = Device.options(transport)
        options.knowledgeID = "device\(number)"
        options.slice = slice
        let ahead = Double(kills) * 4 * Lease.duration
        options.now = { Date(timeIntervalSinceNow: ahead) }
        network.whileLate(syncingElsewhere(options, ahead: ahead + 2 * Lease.duration))
        try await device.weir.attach("abc", server: Device.url, options: options)
        for table in tables { try await device.weir.setResolver(conflictResolver, for: table) }
    }

    /// What another process does while an answer is late: it writes, finds that the lease has run out, and syncs.
    private func syncingElsewhere(_ options: SyncOptions, ahead: Double) -> @Sendable () async throws -> Void {
        var options = options
        options.now = { Date(timeIntervalSinceNow: ahead) }
        let (number, path, tables, late) = (number, device.folder.file(), tables, late)
        return { [options] in
            // It does not end with the request.
            try await Task {
                let weir = try await Weir.open(URL(fileURLWithPath: path), tables: tables)
                let database = try Database(path: path)
                let row = "\(number)-late\(late.next())"
                try database.run("INSERT INTO list VALUES ('own\(row)', 'w\(row)')")
                database.close()
                do {
                    try await weir.attach("abc", server: Device.url, options: options)
                    try await weir.sync()
                } catch is SyncError {
                    // It was killed, or the run has no requests left.
                }
                await weir.close()
            }.value
        }
    }

    private var conflictResolver: ConflictResolver? {
        switch resolver {
        case .none: nil
        case .keepLocal: .keepLocal
        case .acceptServer: .acceptServer
        case .mergeColumns: .mergeColumns
        case .merge: ConflictResolver { .merge($0.local.merging($0.server ?? [:]) { $0 == .null ? $1 : $0 }) }
        case .revive: ConflictResolver(deletionsWin: false) { $0.isDeletion ? .acceptServer : .keepLocal }
        case .fail: ConflictResolver { _ in throw ScriptedTransport.Lost() }
        }
    }

    func restart() async throws { try await device.restart(tables: tables) }

    func upgrade() async throws {
        if !isUpgraded { try device.run(Self.migration) }
        isUpgraded = true
        try await restart()
    }

    /// Continues on what a kill has left.
    func `continue`(after kill: Kill) async throws {
        await device.weir.close()
        kills += 1
        device = try await Device(copying: { try kill.write(to: $0) }, tables: tables)
        try enforceForeignKeys()
    }

    /// Writes with a connection of its own, or with Weir's.
    func write(_ sql: String) async throws {
        if number % 2 == 0 { return try device.run("BEGIN IMMEDIATE; \(sql); COMMIT") }
        try await device.weir.write { db in
            for statement in sql.split(separator: "; ") { try db.execute(String(statement)) }
        }
    }

    /// Takes the unique values from rows that were not stored, if rows of the server wait for them.
    func freeSlots() async throws -> Bool {
        guard try parked().contains(where: { $0.contains("UNIQUE") }) else { return false }
        try await write("UPDATE item AS t SET slot = NULL WHERE slot IS NOT NULL AND NOT \(Self.isStored(2))")
        return true
    }

    // MARK: What it has

    /// The rows that the server has, of an upgraded app.
    func rows() throws -> [String] {
        try [
            "SELECT 'list ' || id || ' ' || ifnull(name, '-') FROM list AS t WHERE \(Self.isStored(1)) ORDER BY id",
            "SELECT 'item ' || id || ' ' || ifnull(title, '-') || ' ' || ifnull(note, '-') || ' ' || ifnull(slot, '-') "
                + "|| ' ' || ifnull(list, '-') || ' ' || ifnull(extra, '-') FROM item AS t WHERE \(Self.isStored(2)) ORDER BY id",
            "SELECT 'pic ' || hex(id) || ' ' || ifnull(name, '-') || ' ' || ifnull(taken, '-') FROM pic AS t "
                + "WHERE \(Self.isStored(3)) ORDER BY id",
            "SELECT 'tag ' || id || ' ' || ifnull(name, '-') FROM tag AS t WHERE \(Self.isStored(4)) ORDER BY id",
        ].flatMap { try device.rows($0) }
    }

    /// Whether the server has a row `t` of the table with this number.
    private static func isStored(_ table: Int) -> String {
        "EXISTS (SELECT 1 FROM weir_row_\(table) AS r WHERE r.id = t.id)"
    }

    /// Rows that the server does not have, and that no kept edit names: the insertion of a row under a new key is aborted where the
    /// deletion under the old one is a conflict, and stays in the table.
    func unexplained() throws -> [String] {
        try tables.enumerated().flatMap {
            try device.rows(
                """
                SELECT '\($1) ' || hex(id) FROM \($1) AS t WHERE NOT \(Self.isStored($0 + 1))
                AND NOT EXISTS (SELECT 1 FROM weir_aside AS k WHERE k.tbl = \($0 + 1) AND k.id = t.id)
                """)
        }
    }

    /// Rows that are not as the server has them, by the views of their states, without those to decide about.
    func unsynced() throws -> [String] {
        try tables.flatMap {
            try device.rows(
                """
                SELECT '\($0) ' || hex(id) || ' ' || state FROM weir_\($0)_state
                WHERE state NOT IN ('synced', 'conflict', 'refused', 'parked') OR state = 'synced' AND NOT is_seen
                """)
        }
    }

    /// Those that no other device writes.
    func own() throws -> [String] {
        try device.rows(
            "SELECT id || ' ' || ifnull(name, '-') FROM list WHERE id LIKE 'own\(number)-%' ORDER BY id")
    }

    /// What is known of each row: equal on all devices afterwards.
    func states() throws -> [String] {
        try tables.indices.flatMap {
            try device.rows(
                "SELECT '\($0) ' || hex(id) || ' ' || time_stamp || ' ' || deleted FROM weir_row_\($0 + 1) ORDER BY id")
        }
    }

    /// The tombstones of integers that the app has given to new rows, as another owner's: the file has one version for a key, and that of the new
    /// row was refused, since the test's server has one row for an id.
    func forgottenTombstones(among states: [String]) throws -> Set<String> {
        let refused = try device.rows("SELECT '1 ' || hex(id) FROM weir_aside WHERE tbl = 2 AND code = 'not_granted'")
        return Set(states.filter { state in state.hasSuffix(" 1") && refused.contains { state.hasPrefix($0 + " ") } })
    }

    /// Those that cannot be written.
    func parked() throws -> [String] {
        try device.rows(
            "SELECT name || ' ' || id || ' ' || time_stamp || ': ' || reason FROM weir_parked ORDER BY name, id")
    }

    /// The texts that devices have written and that its tables have.
    func texts() throws -> Set<String> {
        let columns =
            [("list", "name"), ("item", "title"), ("item", "note"), ("pic", "name")]
            + (isUpgraded ? [("item", "extra"), ("tag", "name")] : [])
        return Set(
            try columns.flatMap { try device.rows("SELECT \($1) FROM \($0) WHERE \($1) LIKE 'w%'") })
    }

    /// Those of the batch that has no outcome yet, also of rows that the app has not any more.
    func sent() throws -> Set<String> {
        let body = try device.rows("SELECT CAST(body AS TEXT) FROM weir_batch").joined()
        return Set(body.matches(of: /"(w\d+)"/).map { String($0.1) })
    }

    /// Rows of which decisions about one version of the server's were written again and again, since the server has found the same conflict.
    func repeated() throws -> [String] {
        try device.rows(
            """
            SELECT tbl || ' ' || hex(id) || ' ' || count(*) FROM weir_aside
            WHERE code = 'conflict' AND resolution IN ('keptLocal', 'merged')
            GROUP BY tbl, id, json_extract(CAST(row AS TEXT), '$.timeStamp') HAVING count(*) > 3
            """)
    }

    /// The changes that were kept aside, as JSON.
    func kept() throws -> String { try device.rows("SELECT CAST(change AS TEXT) FROM weir_aside").joined() }
}
