import Foundation

/// An app that keeps the client contract, with everything in an SQLite file: rows, what is not uploaded, the batch that has no answer
/// yet, and the vector.
final class ContractApp {
    /// A table with its columns, all of them text.
    struct Table {
        let name: String
        let columns: [String]
    }

    let knowledgeID: String
    var client: DeviceClient
    /// Parents first.
    private let tables: [Table]
    private let database: AppDatabase
    /// Ids of rows whose edits the server's rows have replaced.
    var conflicts: [String] = []

    /// Opens the app's file.
    init(_ path: String, _ client: DeviceClient, knowledgeID: String, _ tables: [Table]) throws {
        self.knowledgeID = knowledgeID
        self.tables = tables
        self.client = client
        database = AppDatabase(path: path)
        try database.write { db in
            try db.execute("CREATE TABLE IF NOT EXISTS state(name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            for table in tables {
                try db.execute(
                    """
                    CREATE TABLE IF NOT EXISTS \(table.name)(id TEXT PRIMARY KEY, \(table.columns.map { "\($0) TEXT, " }.joined())\
                    deleted INTEGER NOT NULL DEFAULT 0, timeStamp INTEGER NOT NULL DEFAULT 0, editedAt TEXT)
                    """)
            }
        }
    }

    // MARK: What the user does

    func insert(_ table: String, _ id: String, _ values: [String: String]) throws {
        let places = values.indices.enumerated().map { "?\($0.offset + 3)" }.joined(separator: ", ")
        try database.run(
            "INSERT INTO \(table)(id, editedAt, \(values.keys.joined(separator: ", "))) VALUES (?1, ?2, \(places))",
            [JSON(id), JSON(TrackerDevice.now())] + values.values.map { JSON($0) })
    }

    func update(_ table: String, _ id: String, title: String) throws {
        try database.run(
            "UPDATE \(table) SET title = ?2, editedAt = ?3 WHERE id = ?1",
            [JSON(id), JSON(title), JSON(TrackerDevice.now())])
    }

    func delete(_ table: String, _ id: String) throws {
        try database.run(
            "UPDATE \(table) SET deleted = 1, editedAt = ?2 WHERE id = ?1", [JSON(id), JSON(TrackerDevice.now())])
    }

    /// The rows that the user sees.
    func rows(_ table: String) throws -> [JSON] {
        let columns = tables.first { $0.name == table }?.columns ?? []
        return try database.rows(
            "SELECT json_object('id', id, \(Self.members(columns))) FROM \(table) WHERE deleted = 0 ORDER BY id")
    }

    private static func members(_ columns: [String]) -> String {
        columns.map { "'\($0)', \($0)" }.joined(separator: ", ")
    }

    func tag(of id: String) throws -> String? {
        for table in tables {
            let found = try database.rows("SELECT json_quote(tag) FROM \(table.name) WHERE id = ?1", [JSON(id)])
            if let tag = found.first?.string { return tag }
        }
        return nil
    }

    var hasPending: Bool {
        get throws {
            try tables.contains {
                try !database.rows("SELECT json_quote(id) FROM \($0.name) WHERE editedAt IS NOT NULL").isEmpty
            }
        }
    }

    // MARK: A sync

    /// Uploads and pulls until both have nothing left.
    func sync() async throws {
        while true {
            let (number, changes) = try batch()
            var request: JSON = [
                "knowledgeId": JSON(knowledgeID), "limit": 7, "knowledge": try state("knowledge") ?? [],
            ]
            if let cutFrom = try state("cutFrom"), !cutFrom.isNull { request = request.with("cutFrom", cutFrom) }
            if !changes.array.isEmpty { request = request.with("batch", JSON(number)).with("changes", changes) }
            let answer: JSON
            do {
                answer = try await client.sync(request)
            } catch let failure as DeviceClient.Failure where failure.status == 504 {
                // Durable, and its outcome not known yet.
                continue
            }
            try database.write { db in try take(answer, changes, db) }
            if try answer["hasMore"].bool != true && !hasPending { return }
        }
    }

    /// The batch that has no answer yet, else one of all edits, stored before it is sent.
    private func batch() throws -> (number: Int, changes: JSON) {
        try database.write { db in
            let number = try Self.state("batch", db)?.int ?? 0
            if let changes = try Self.state("changes", db), !changes.isNull { return (number, changes) }
            let rows = try tables.flatMap { table in
                try db.rows(
                    """
                    SELECT json_object('table', '\(table.name)', 'id', id, 'updatedAt', editedAt, \
                    'deleted', json(iif(deleted, 'true', 'false')), 'values', json_object(\(Self.members(table.columns)))) \
                    FROM \(table.name) WHERE editedAt IS NOT NULL ORDER BY id
                    """)
            }
            if rows.isEmpty { return (number, []) }
            let changes = JSON(rows.map(\.value))
            try Self.set("batch", JSON(number + 1), db)
            try Self.set("changes", changes, db)
            return (number + 1, changes)
        }
    }

    /// Applies an answer in one transaction: results first, then rows, then the vector.
    private func take(_ answer: JSON, _ changes: JSON, _ db: AppTransaction) throws {
        for (change, result) in zip(changes.array, answer["batch"]["results"].array) {
            let table = change["table"].string ?? ""
            switch result["status"].string {
            case "applied", "deleted":
                // The user may have edited the row since.
                try db.run(
                    "UPDATE \(table) SET editedAt = NULL WHERE id = ?1 AND editedAt = ?2",
                    [change["id"], change["updatedAt"]])
                let isDeleted = change["deleted"].bool == true || result["status"].string == "deleted"
                if isDeleted {
                    try db.run("UPDATE \(table) SET deleted = 1 WHERE id = ?1 AND editedAt IS NULL", [change["id"]])
                }
                // The answer to a repeated batch may be older than the row that was pulled since.
                try db.run(
                    "UPDATE \(table) SET timeStamp = max(timeStamp, ?2) WHERE id = ?1",
                    [change["id"], result["timeStamp"]])
            default:
                conflicts.append(change["id"].string ?? "")
                try db.run(
                    "UPDATE \(table) SET editedAt = NULL WHERE id = ?1 AND editedAt = ?2",
                    [change["id"], change["updatedAt"]])
                if !result["row"].isNull { try replace(result["row"], db) }
            }
        }
        if !changes.array.isEmpty { try Self.set("changes", JSON(NSNull()), db) }
        for row in answer["changes"].array { try replace(row, db) }
        let named = Set(answer["knowledge"].array.compactMap { $0["syncId"].string })
        let kept = (try Self.state("knowledge", db)?.array ?? []).filter { !named.contains($0["syncId"].string ?? "") }
        try Self.set("knowledge", JSON((kept + answer["knowledge"].array).map(\.value)), db)
        try Self.set("cutFrom", answer["cutFrom"], db)
    }

    /// Takes over the server's row, unless the user has an edit of it that is still to be uploaded.
    private func replace(_ row: JSON, _ db: AppTransaction) throws {
        guard let table = tables.first(where: { $0.name == row["table"].string }) else { return }
        let isDeleted: JSON = row["deleted"].bool == true ? 1 : 0
        let names = table.columns + ["deleted", "timeStamp"]
        let places = names.indices.map { ", ?\($0 + 2)" }.joined()
        let set = names.indices.map { "\(names[$0]) = ?\($0 + 2)" }.joined(separator: ", ")
        try db.run(
            """
            INSERT INTO \(table.name)(id, \(names.joined(separator: ", "))) VALUES (?1\(places)) ON CONFLICT(id) DO UPDATE \
            SET \(set) WHERE editedAt IS NULL AND timeStamp < ?\(names.count + 1)
            """, [row["id"]] + table.columns.map { row["values"][$0] } + [isDeleted, row["timeStamp"]])
    }

    // MARK: The file

    private func state(_ name: String) throws -> JSON? { try database.write { try Self.state(name, $0) } }

    private static func state(_ name: String, _ db: AppTransaction) throws -> JSON? {
        try db.rows("SELECT value FROM state WHERE name = ?1", [JSON(name)]).first
    }

    private static func set(_ name: String, _ value: JSON, _ db: AppTransaction) throws {
        let data = try JSONSerialization.data(withJSONObject: value.value, options: .fragmentsAllowed)
        try db.run(
            "INSERT OR REPLACE INTO state VALUES (?1, ?2)", [JSON(name), JSON(String(decoding: data, as: UTF8.self))])
    }
}
