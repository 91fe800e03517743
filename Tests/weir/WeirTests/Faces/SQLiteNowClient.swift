import Foundation

/// A client of the SQLiteNow protocol, written from its document: triggers queue what the app writes, uploads resolve conflicts, and a
/// download of what came shortly before follows each upload.
///
/// Used by one task at a time.
final class SQLiteNowClient {
    struct Table {
        let name: String
        /// Without the primary key `id`.
        let columns: [String]

        var all: [String] { ["id"] + columns }
    }

    /// What happens to a request.
    enum Network {
        case works
        case losesRequest
        case losesAnswer
    }

    struct Offline: Error {}

    /// The app's conflict resolver: the merged payload, or `nil` to accept the server's row.
    typealias Resolver = (_ serverRow: JSON, _ payload: JSON) -> JSON?

    let source: String
    let database: AppDatabase
    let tables: [Table]
    /// Decides what happens to each request.
    var network: () -> Network = { .works }
    var resolve: Resolver = { server, _ in
        _ = server
        return nil
    }
    /// What arrives in place of an answer.
    var alter: (JSON) -> JSON = { $0 }
    /// Statuses that the app was shown.
    private(set) var errors: [JSON] = []
    /// What became of conflicts.
    private(set) var decisions: [String] = []
    /// Changes of downloads that could not be read.
    var skipped: [JSON] = []
    /// The device's clock, in seconds.
    var now = 0
    /// Exponential backoff: failed syncs since the last one that ended, and when the next one may be.
    private(set) var failures = 0
    private(set) var nextSync = 0
    var client: DeviceClient
    let limit: Int
    private let uploadLimit: Int

    /// Opens the app's file; section 3.1.
    init(
        _ path: String, port: UInt16, syncID: String, source: String, tables: [Table], limit: Int = 1000,
        uploadLimit: Int = 100
    ) throws {
        self.source = source
        self.tables = tables
        self.limit = limit
        self.uploadLimit = uploadLimit
        database = AppDatabase(path: path)
        client = DeviceClient(port: port, headers: ["X-Sync-Id": syncID, "X-Device-Id": source])
        try database.write { db in
            try db.execute(
                """
                CREATE TABLE IF NOT EXISTS _sync_client_info(source_id TEXT PRIMARY KEY, next_change_id INTEGER NOT NULL, \
                last_server_seq_seen INTEGER NOT NULL, apply_mode INTEGER NOT NULL DEFAULT 0);
                CREATE TABLE IF NOT EXISTS _sync_row_meta(table_name TEXT NOT NULL, pk_uuid TEXT NOT NULL, \
                server_version INTEGER NOT NULL, deleted INTEGER NOT NULL, PRIMARY KEY(table_name, pk_uuid));
                CREATE TABLE IF NOT EXISTS _sync_pending(queued_at INTEGER NOT NULL, table_name TEXT NOT NULL, \
                pk_uuid TEXT NOT NULL, op TEXT NOT NULL, base_version INTEGER NOT NULL, payload TEXT, change_id INTEGER, \
                UNIQUE(table_name, pk_uuid, change_id));
                """)
            try db.run("INSERT OR IGNORE INTO _sync_client_info VALUES (?1, 1, 0, 0)", [JSON(source)])
            for table in tables { try Self.addTriggers(of: table, db) }
        }
    }

    /// Section 2.5.
    private static func addTriggers(of table: Table, _ db: AppTransaction) throws {
        let base = """
            COALESCE((SELECT server_version FROM _sync_row_meta WHERE table_name = '\(table.name)' AND pk_uuid = %.id), 0)
            """
        for (op, row, base, hasPayload) in [
            ("INSERT", "NEW", "0", true), ("UPDATE", "NEW", base.replacing("%", with: "NEW"), true),
            ("DELETE", "OLD", base.replacing("%", with: "OLD"), false),
        ] {
            let payload =
                hasPayload
                ? "json_object(\(table.all.map { "'\($0)', NEW.\($0)" }.joined(separator: ", ")))" : "NULL"
            try db.execute(
                """
                CREATE TRIGGER IF NOT EXISTS sync_\(op)_\(table.name) AFTER \(op) ON \(table.name) FOR EACH ROW
                WHEN (SELECT apply_mode FROM _sync_client_info LIMIT 1) = 0
                BEGIN
                  INSERT INTO _sync_pending VALUES (strftime('%s', 'now') * 1000, '\(table.name)', \(row).id, '\(op)', \
                \(base), \(payload), NULL);
                END
                """)
        }
    }

    // MARK: The cycle

    /// Section 10.1: upload until nothing is queued, look back, download.
    func sync() async throws {
        let count = errors.count
        // What the server did not take stays queued, for a later sync.
        for _ in 0..<50 where try errors.count == count && hasPending { try await upload() }
        try await download()
    }

    /// Section 10.4: syncs, unless the last one failed a short time ago.
    func syncWhenDue() async throws {
        guard now >= nextSync else { return }
        let count = errors.count
        do {
            try await sync()
        } catch is Offline {
            return backOff()
        }
        if errors.dropFirst(count).contains(where: { $0["status"] == "materialize_error" }) { return backOff() }
        (failures, nextSync) = (0, 0)
    }

    private func backOff() {
        failures += 1
        nextSync = now + min(1 << failures, 64)
    }

    var hasPending: Bool {
        get throws { try !database.rows("SELECT json_quote(op) FROM _sync_pending").isEmpty }
    }

    /// Up to where the device has downloaded.
    var watermark: Int { get throws { try info["seen"].int ?? 0 } }

    private var info: JSON {
        get throws {
            try database.rows(
                "SELECT json_object('seen', last_server_seq_seen, 'next', next_change_id) FROM _sync_client_info")[0]
        }
    }

    func send(_ request: () async throws -> DeviceClient.Answer) async throws -> JSON {
        let network = network()
        if network == .losesRequest { throw Offline() }
        let answer = try await request()
        if network == .losesAnswer { throw Offline() }
        guard answer.status == 200 else {
            throw DeviceClient.Failure(
                description: "\(answer.status): \(String(decoding: answer.body, as: UTF8.self))", status: answer.status)
        }
        return alter(try answer.json())
    }

    // MARK: Upload

    /// Uploads one batch and looks back; section 4.
    func upload() async throws {
        let pending = try assignChangeIDs()
        if pending.isEmpty { return }
        let seen = JSON(try watermark)
        let changes = pending.map { row -> JSON in
            [
                "sourceChangeId": row["change_id"], "schema": "business", "table": row["table_name"], "op": row["op"],
                "pk": row["pk_uuid"], "serverVersion": row["base_version"], "payload": row["payload"],
            ]
        }
        let answer = try await send {
            try await client.post(
                "/sync/upload", ["lastServerSeqSeen": seen, "changes": JSON(changes.map(\.value))])
        }
        let statuses = Dictionary(uniqueKeysWithValues: answer["statuses"].array.map { ($0["sourceChangeId"].int, $0) })
        try database.write { db in
            for row in pending {
                guard let status = statuses[row["change_id"].int] else { continue }
                try take(status, of: row, db)
            }
            if let highest = answer["highestServerSeq"].int {
                try db.run(
                    "UPDATE _sync_client_info SET last_server_seq_seen = max(last_server_seq_seen, ?1)", [JSON(highest)]
                )
            }
        }
        try await lookBack()
    }

    /// Section 4.2: the next changes in the order of their queue, each with a number.
    private func assignChangeIDs() throws -> [JSON] {
        try database.write { db in
            for row in try db.rows(
                "SELECT json_quote(rowid) FROM _sync_pending WHERE change_id IS NULL ORDER BY queued_at, rowid")
            {
                try db.run(
                    "UPDATE _sync_pending SET change_id = (SELECT next_change_id FROM _sync_client_info) WHERE rowid = ?1",
                    [row])
                try db.run("UPDATE _sync_client_info SET next_change_id = next_change_id + 1")
            }
            return try db.rows(
                """
                SELECT json_object('change_id', change_id, 'table_name', table_name, 'op', op, 'pk_uuid', pk_uuid, \
                'base_version', base_version, 'payload', json(payload)) FROM _sync_pending \
                ORDER BY change_id LIMIT \(uploadLimit)
                """)
        }
    }

    /// Section 4.5.
    private func take(_ status: JSON, of row: JSON, _ db: AppTransaction) throws {
        let isDelete = row["op"].string == "DELETE"
        switch status["status"].string {
        case "applied":
            try setMeta(row["table_name"], row["pk_uuid"], status["newServerVersion"], isDeleted: isDelete, db)
            try db.run("DELETE FROM _sync_pending WHERE change_id = ?1", [row["change_id"]])
        case "conflict": try resolveConflict(status, row, isDelete: isDelete, db)
        default: errors.append(status)
        }
    }

    /// Sections 6.1 to 6.3.
    private func resolveConflict(_ status: JSON, _ row: JSON, isDelete: Bool, _ db: AppTransaction) throws {
        let server = status["serverRow"]
        let merged: JSON? =
            if isDelete {
                nil as JSON?
            } else if row["payload"].isNull {
                nil
            } else if server.isNull {
                row["payload"]
            } else {
                resolve(server, row["payload"])
            }
        let isKept = isDelete || merged != nil
        decisions.append("\(isKept ? "KeepLocal" : "AcceptServer") \(row["table_name"])/\(row["pk_uuid"])")
        guard isKept else {
            try apply(server, to: row["table_name"], db)
            try setMeta(row["table_name"], row["pk_uuid"], status["newServerVersion"], isDeleted: false, db)
            try db.run("DELETE FROM _sync_pending WHERE change_id = ?1", [row["change_id"]])
            return
        }
        try setMeta(row["table_name"], row["pk_uuid"], status["newServerVersion"], isDeleted: isDelete, db)
        // The app may have edited or deleted the row since.
        let later = try db.rows(
            """
            SELECT json_quote(change_id) FROM _sync_pending WHERE table_name = ?1 AND pk_uuid = ?2 \
            AND (change_id IS NULL OR change_id > ?3)
            """, [row["table_name"], row["pk_uuid"], row["change_id"]])
        if let merged, later.isEmpty { try apply(merged, to: row["table_name"], db) }
        // A download may have brought the row back.
        if isDelete, later.isEmpty { try remove(row["pk_uuid"], from: row["table_name"], db) }
        try db.run(
            "UPDATE _sync_pending SET base_version = ?1, payload = ?2 WHERE change_id = ?3",
            [status["newServerVersion"], merged.map { JSON($0.description) } ?? nil, row["change_id"]])
    }

    func setMeta(_ table: JSON, _ key: JSON, _ version: JSON, isDeleted: Bool, _ db: AppTransaction) throws {
        try db.run(
            "INSERT OR REPLACE INTO _sync_row_meta VALUES (?1, ?2, ?3, ?4)",
            [table, key, version, isDeleted ? 1 : 0])
    }

    // MARK: What the app sees

    /// The rows of a table by their ids.
    func rows(of table: String) throws -> [JSON] {
        guard let table = tables.first(where: { $0.name == table }) else { return [] }
        let members = table.all.map { "'\($0)', \($0)" }.joined(separator: ", ")
        return try database.rows("SELECT json_object(\(members)) FROM \(table.name) ORDER BY id")
    }

    /// The metadata of all rows.
    var meta: [JSON] {
        get throws {
            try database.rows(
                """
                SELECT json_object('table', table_name, 'id', pk_uuid, 'version', server_version, 'deleted', deleted) \
                FROM _sync_row_meta ORDER BY table_name, pk_uuid
                """)
        }
    }
}
