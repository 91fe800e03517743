import Foundation

/// An app that keeps the client contract, with everything in an SQLite file: rows, what is not uploaded, the batch that has no answer
/// yet, and the vector.
final class ContractApp {
    let knowledgeID: String
    var client: DeviceClient
    private let database: AppDatabase
    /// Ids of rows whose edits the server's rows have replaced.
    var conflicts: [String] = []

    /// Opens the app's file.
    init(_ path: String, _ client: DeviceClient, knowledgeID: String) throws {
        self.knowledgeID = knowledgeID
        self.client = client
        database = AppDatabase(path: path)
        try database.write { db in
            try db.execute(
                """
                CREATE TABLE IF NOT EXISTS note(id TEXT PRIMARY KEY, tag TEXT, title TEXT, deleted INTEGER NOT NULL DEFAULT 0, \
                timeStamp INTEGER NOT NULL DEFAULT 0, editedAt TEXT);
                CREATE TABLE IF NOT EXISTS state(name TEXT PRIMARY KEY, value TEXT NOT NULL);
                """)
        }
    }

    // MARK: What the user does

    func insert(_ id: String, _ tag: String, _ title: String) throws {
        try database.run(
            "INSERT INTO note(id, tag, title, editedAt) VALUES (?1, ?2, ?3, ?4)",
            [JSON(id), JSON(tag), JSON(title), JSON(TrackerDevice.now())])
    }

    func update(_ id: String, _ title: String) throws {
        try database.run(
            "UPDATE note SET title = ?2, editedAt = ?3 WHERE id = ?1",
            [JSON(id), JSON(title), JSON(TrackerDevice.now())])
    }

    func delete(_ id: String) throws {
        try database.run(
            "UPDATE note SET deleted = 1, editedAt = ?2 WHERE id = ?1", [JSON(id), JSON(TrackerDevice.now())])
    }

    /// The rows that the user sees.
    func rows() throws -> [JSON] {
        try database.rows(
            "SELECT json_object('id', id, 'tag', tag, 'title', title) FROM note WHERE deleted = 0 ORDER BY id")
    }

    func tag(of id: String) throws -> String? {
        try database.rows("SELECT json_quote(tag) FROM note WHERE id = ?1", [JSON(id)]).first?.string
    }

    var hasPending: Bool {
        get throws { try !database.rows("SELECT json_quote(id) FROM note WHERE editedAt IS NOT NULL").isEmpty }
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
            let rows = try db.rows(
                """
                SELECT json_object('table', 'note', 'id', id, 'updatedAt', editedAt, 'deleted', json(iif(deleted, 'true', 'false')), \
                'values', json_object('tag', tag, 'title', title)) FROM note WHERE editedAt IS NOT NULL ORDER BY id
                """)
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
            switch result["status"].string {
            case "applied", "deleted":
                // The user may have edited the row since.
                try db.run(
                    "UPDATE note SET editedAt = NULL WHERE id = ?1 AND editedAt = ?2",
                    [change["id"], change["updatedAt"]])
                let isDeleted = change["deleted"].bool == true || result["status"].string == "deleted"
                if isDeleted {
                    try db.run("UPDATE note SET deleted = 1 WHERE id = ?1 AND editedAt IS NULL", [change["id"]])
                }
                // The answer to a repeated batch may be older than the row that was pulled since.
                try db.run(
                    "UPDATE note SET timeStamp = max(timeStamp, ?2) WHERE id = ?1", [change["id"], result["timeStamp"]])
            default:
                conflicts.append(change["id"].string ?? "")
                try db.run(
                    "UPDATE note SET editedAt = NULL WHERE id = ?1 AND editedAt = ?2",
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
        let isDeleted: JSON = row["deleted"].bool == true ? 1 : 0
        try db.run(
            """
            INSERT INTO note(id, tag, title, deleted, timeStamp) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT(id) DO UPDATE \
            SET tag = ?2, title = ?3, deleted = ?4, timeStamp = ?5 WHERE editedAt IS NULL AND timeStamp < ?5
            """, [row["id"], row["values"]["tag"], row["values"]["title"], isDeleted, row["timeStamp"]])
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
