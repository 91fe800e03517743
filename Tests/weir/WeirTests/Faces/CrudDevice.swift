import Foundation
import Testing

/// A client of Locify's document, written from it and docs/faces/crud.md alone: its local storage is a SQLite file whose records have
/// a `sync_status`.
///
/// Used by one task at a time.
final class CrudDevice {
    struct Collection {
        let name: String
        let columns: [String]
        /// The column in which children name a record of it, which a delete of one reassigns.
        var childColumn: String?
    }

    /// What happens to a request.
    enum Network {
        case works
        case losesRequest
        case losesAnswer
    }

    struct Unreachable: Error {}

    /// Of the server's categories and locations: creates in this order, so that parents come first.
    static let collections = [
        Collection(name: "category", columns: ["name"], childColumn: "category_id"),
        Collection(name: "location", columns: ["name", "category_id"]),
    ]

    let name: String
    var client: DeviceClient
    var isOnline = true
    var network: (_ request: String) -> Network = { _ in .works }
    /// The device's clock, in seconds, unless it has another.
    var now = 0
    var clock: (() -> String)?
    /// Called at each moment between two requests, or between one and what is done with its answer.
    var hook: ((_ moment: Int) async throws -> Void)?
    private(set) var moments = 0
    /// Records of which the user lost an edit to the server's version.
    var conflicts: [String] = []
    /// Records that others had deleted.
    private(set) var gone: [String] = []
    /// Requests that the server refused.
    var refused: [String] = []
    /// Records of which the server has answered that they are deleted, and their children elsewhere.
    var reassigned: [String] = []
    /// Exponential backoff: failed syncs since the last one that ended, and when the next one may be.
    private(set) var failures = 0
    private(set) var nextSync = 0

    private let collections: [Collection]
    private let storage: AppDatabase

    init(
        _ name: String, port: UInt16, owner: String = "abc", in folder: TestFolder,
        _ collections: [Collection] = collections
    ) throws {
        self.name = name
        self.collections = collections
        client = DeviceClient(port: port, headers: ["X-Sync-Id": owner, "X-Device-Id": name])
        storage = AppDatabase(path: "\(folder.path)/\(name).db")
        for collection in collections {
            try storage.run(
                """
                CREATE TABLE IF NOT EXISTS \(collection.name)(id TEXT PRIMARY KEY, \
                \(collection.columns.map { "\($0) TEXT, " }.joined())created_at TEXT, updated_at TEXT NOT NULL, user_id TEXT, \
                sync_status TEXT NOT NULL, reassign TEXT)
                """)
        }
    }

    /// The text of the device's clock.
    var time: String {
        if let clock { return clock() }
        let parts = [now / 3600, now / 60 % 60, now % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }
        return "2025-05-01T\(parts.joined(separator: ":")).000Z"
    }

    // MARK: Data flows

    /// Get data: the server's records overwrite those that have nothing to send; what it lacks is gone.
    func get(_ table: String) async throws -> [JSON] {
        if isOnline, let answer = try await answer(to: "GET", "/api/\(table)"), answer.status == 200 {
            let records = try answer.json().array
            try await moment()
            try storage.write { db in
                for record in records { try store(record, in: table, db, overPending: false) }
                let ids = String(
                    decoding: try JSONEncoder().encode(records.compactMap { $0["id"].string }), as: UTF8.self)
                try db.run(
                    "DELETE FROM \(table) WHERE sync_status = 'synced' AND id NOT IN (SELECT value FROM json_each(?1))",
                    [JSON(ids)])
            }
        }
        return try shown(table)
    }

    /// Create data: stored as `pendingCreate` until the server has answered.
    func create(_ table: String, _ id: String, _ values: JSON) async throws {
        try keep(table, id, values)
        if isOnline { try await pushOnline(table, id) }
    }

    func keep(_ table: String, _ id: String, _ values: JSON) throws {
        try storage.write { db in
            try db.run(
                "INSERT INTO \(table)(id, updated_at, sync_status) VALUES(?1, ?2, 'pendingCreate')",
                [JSON(id), JSON(time)])
            try Self.set(values, of: table, id, db)
        }
    }

    /// Update data: stored as `pendingUpdate` until the server has answered, also what was never sent.
    func update(_ table: String, _ id: String, _ values: JSON) async throws {
        try edit(table, id, values)
        if isOnline { try await pushOnline(table, id) }
    }

    func edit(_ table: String, _ id: String, _ values: JSON) throws {
        try storage.write { db in
            try db.run(
                "UPDATE \(table) SET updated_at = ?2, sync_status = 'pendingUpdate' WHERE id = ?1",
                [JSON(id), JSON(time)])
            try Self.set(values, of: table, id, db)
        }
    }

    /// Delete data: hidden as `pendingDelete` until the server has answered.
    func delete(_ table: String, _ id: String, reassign: String? = nil) async throws {
        try hide(table, id, reassign: reassign)
        if isOnline { try await pushOnline(table, id) }
    }

    func hide(_ table: String, _ id: String, reassign: String? = nil) throws {
        try storage.run(
            "UPDATE \(table) SET sync_status = 'pendingDelete', reassign = ?2 WHERE id = ?1",
            [JSON(id), reassign.map { JSON($0) } ?? nil])
    }

    /// The synchronization: creates, updates and deletes, in this order, unless the last one failed a short time ago.
    func sync() async throws {
        guard isOnline, now >= nextSync else { return }
        moments = 0
        do {
            for status in ["pendingCreate", "pendingUpdate", "pendingDelete"] {
                for collection in collections {
                    let ids = try storage.rows(
                        "SELECT json_quote(id) FROM \(collection.name) WHERE sync_status = ?1 ORDER BY id",
                        [JSON(status)])
                    for id in ids.compactMap(\.string) { try await push(collection.name, id) }
                }
            }
        } catch is Unreachable {
            failures += 1
            nextSync = now + min(1 << failures, 64)
            return
        }
        (failures, nextSync) = (0, 0)
    }

    // MARK: One record

    /// A failed request leaves the record as it is, for the next sync.
    private func pushOnline(_ table: String, _ id: String) async throws {
        do { try await push(table, id) } catch is Unreachable {}
    }

    private func push(_ table: String, _ id: String) async throws {
        let record = try #require(try record(table, id))
        try await moment()
        let answer: DeviceClient.Answer?
        switch record["sync_status"].string {
        case "pendingCreate": answer = try await self.answer(to: "POST", "/api/\(table)", Self.body(record))
        case "pendingUpdate": answer = try await self.answer(to: "PUT", "/api/\(table)/\(id)", Self.body(record))
        default:
            let column = collections.first { $0.name == table }?.childColumn
            let reassign = record["reassign"]
            var body: JSON?
            if let column, !reassign.isNull { body = ([:] as JSON).with("reassign_\(column)", reassign) }
            answer = try await self.answer(to: "DELETE", "/api/\(table)/\(id)", body)
        }
        guard let answer else { throw Unreachable() }
        try await moment()
        switch answer.status {
        case 200, 201: try store(try answer.json(), in: table)
        case 204:
            if !record["reassign"].isNull { reassigned.append(id) }
            try remove(id, from: table)
        case 409 where try answer.json()["code"] == "conflict":
            conflicts.append(id)
            try store(try answer.json()["record"], in: table)
        case 410:
            gone.append(id)
            try remove(id, from: table)
        case 429, 500...: throw Unreachable()
        default: refused.append("\(answer.status) \(table)/\(id)")
        }
    }

    private static func body(_ record: JSON) -> JSON {
        JSON(record.object.filter { !["reassign", "created_at", "user_id"].contains($0.key) }.mapValues(\.value))
    }

    /// `nil` where none arrives.
    private func answer(to method: String, _ path: String, _ body: JSON? = nil) async throws -> DeviceClient.Answer? {
        let network = network("\(method) \(path)")
        if network == .losesRequest { return nil }
        var answer = try await client.send(method, path, body)
        // Durable, and its outcome not known yet: the request is repeated.
        while answer.status == 503 { answer = try await client.send(method, path, body) }
        return network == .losesAnswer ? nil : answer
    }

    private func moment() async throws {
        try await hook?(moments)
        moments += 1
    }

    // MARK: Local storage

    /// What the app shows.
    func shown(_ table: String) throws -> [JSON] {
        try rows(table, where: "sync_status <> 'pendingDelete'")
    }

    /// Everything that the device keeps.
    func stored(_ table: String) throws -> [JSON] { try rows(table, where: "true") }

    /// What is still to be sent.
    func pending() throws -> [String] {
        try collections.flatMap { collection in
            try rows(collection.name, where: "sync_status <> 'synced'").compactMap { $0["id"].string }
        }
    }

    func record(_ table: String, _ id: String) throws -> JSON? {
        try stored(table).first { $0["id"].string == id }
    }

    private func rows(_ table: String, where condition: String) throws -> [JSON] {
        let columns = columns(table) + ["reassign"]
        return try storage.rows(
            """
            SELECT json_object(\(columns.map { "'\($0)', \($0)" }.joined(separator: ", "))) FROM \(table) \
            WHERE \(condition) ORDER BY id
            """
        ).map { $0["reassign"].isNull ? JSON($0.object.filter { $0.key != "reassign" }.mapValues(\.value)) : $0 }
    }

    private func columns(_ table: String) -> [String] {
        ["id"] + (collections.first { $0.name == table }?.columns ?? [])
            + ["created_at", "updated_at", "user_id", "sync_status"]
    }

    private func store(_ record: JSON, in table: String) throws {
        try storage.write { try store(record, in: table, $0, overPending: true) }
    }

    private func store(
        _ record: JSON, in table: String, _ db: AppTransaction, overPending: Bool
    ) throws {
        let columns = columns(table)
        try db.run(
            """
            INSERT INTO \(table)(\(columns.joined(separator: ", "))) \
            VALUES(\(columns.map { _ in "?" }.joined(separator: ", "))) \
            ON CONFLICT(id) DO UPDATE SET \(columns.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")), reassign = NULL \
            WHERE \(overPending ? "true" : "sync_status = 'synced'")
            """, columns.map { record[$0] })
    }

    private func remove(_ id: String, from table: String) throws {
        try storage.run("DELETE FROM \(table) WHERE id = ?1", [JSON(id)])
    }

    private static func set(_ values: JSON, of table: String, _ id: String, _ db: AppTransaction) throws {
        for (name, value) in values.object {
            try db.run("UPDATE \(table) SET \(name) = ?2 WHERE id = ?1", [JSON(id), value])
        }
    }
}
