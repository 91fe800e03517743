import Foundation

/// Sections 5 and 7 of the document.
extension SQLiteNowClient {
    /// A page without a position, of which nothing is applied.
    struct Malformed: Error {}

    /// Section 5; section 3.2 with `includeSelf`.
    func download(includeSelf: Bool = false) async throws {
        while try await page(after: try watermark, includeSelf: includeSelf) {}
    }

    /// Section 7: downloads what came shortly before the position once more, with the device's own changes.
    func lookBack() async throws {
        let end = try watermark
        var after = max(0, end - max(1000, 2 * limit))
        while after < end {
            let answer = try await get(after, includeSelf: true, until: end)
            try database.write { db in
                for change in answer["changes"].array { try take(change, isLookback: true, db) }
            }
            after = answer["nextAfter"].int ?? end
            if answer["hasMore"].bool != true { break }
        }
    }

    private func page(after: Int, includeSelf: Bool) async throws -> Bool {
        let answer = try await get(after, includeSelf: includeSelf, until: nil)
        guard let next = answer["nextAfter"].int else { throw Malformed() }
        try database.write { db in
            for change in answer["changes"].array {
                if !includeSelf, change["sourceId"].string == source { continue }
                try take(change, isLookback: false, db)
            }
            try db.run("UPDATE _sync_client_info SET last_server_seq_seen = ?1", [JSON(next)])
        }
        return answer["hasMore"].bool == true
    }

    private func get(_ after: Int, includeSelf: Bool, until: Int?) async throws -> JSON {
        let bound = until.map { "&until=\($0)" } ?? ""
        return try await send {
            try await client.get(
                "/sync/download?after=\(after)&limit=\(limit)&includeSelf=\(includeSelf)&schema=business\(bound)")
        }
    }

    /// Sections 5.3 and 7.3.
    private func take(_ change: JSON, isLookback: Bool, _ db: AppTransaction) throws {
        guard isWellFormed(change) else { return skipped.append(change) }
        let (table, key, version) = (change["tableName"], change["pk"], change["serverVersion"])
        if isLookback {
            let known = try db.rows(
                "SELECT json_quote(server_version) FROM _sync_row_meta WHERE table_name = ?1 AND pk_uuid = ?2",
                [table, key])
            if (version.int ?? 0) <= known.first?.int ?? 0 { return }
        }
        if change["op"].string == "DELETE" {
            try remove(key, from: table, db)
        } else {
            try apply(change["payload"], to: table, db)
        }
        try setMeta(table, key, version, isDeleted: change["op"].string == "DELETE", db)
    }

    /// Section 10.4: whether a change has what is needed to apply it; others are logged and skipped.
    private func isWellFormed(_ change: JSON) -> Bool {
        guard let table = tables.first(where: { $0.name == change["tableName"].string }),
            change["pk"].string?.isEmpty == false, change["serverVersion"].int != nil
        else { return false }
        switch change["op"].string {
        case "DELETE": return true
        case "INSERT", "UPDATE":
            let payload = change["payload"].object
            return payload["id"] == change["pk"] && table.all.allSatisfy { payload[$0] != nil }
        default: return false
        }
    }

    func apply(_ payload: JSON, to table: JSON, _ db: AppTransaction) throws {
        guard let table = tables.first(where: { $0.name == table.string }) else { return }
        let places = table.all.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
        try withoutTriggers(db) {
            try db.run(
                "INSERT OR REPLACE INTO \(table.name)(\(table.all.joined(separator: ", "))) VALUES (\(places))",
                table.all.map { payload[$0] })
        }
    }

    func remove(_ key: JSON, from table: JSON, _ db: AppTransaction) throws {
        try withoutTriggers(db) { try db.run("DELETE FROM \(table.string ?? "") WHERE id = ?1", [key]) }
    }

    private func withoutTriggers(_ db: AppTransaction, _ body: () throws -> Void) throws {
        try db.run("UPDATE _sync_client_info SET apply_mode = 1")
        try body()
        try db.run("UPDATE _sync_client_info SET apply_mode = 0")
    }
}
