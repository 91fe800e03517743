import Foundation
import SQLite
import Testing

/// A client of the REST Ts/Dirty document, written from it alone: the nine steps on a real SQLite file.
///
/// Its conflict resolution is the document's: the server's version replaces the local one, and a log says so.
final class RestDevice {
    /// A moment of a sync between two requests, or between one and what is done with its answer.
    typealias Hook = (_ moment: Int) async throws -> Void

    let name: String
    var client: DeviceClient
    private let database: Connection
    private let columns: [String: [String]]
    /// What the user lost to the server's version, by id.
    var conflicts: [String] = []
    /// Called at each moment of a sync.
    var hook: Hook?
    private(set) var moments = 0
    /// Requests whose answers are lost, by their number.
    var losesAnswer: (_ request: String) -> Bool = { _ in false }

    /// Called for each record that the server has stored, whether the answer arrives or not.
    var hasStored: ((_ id: String, _ answerIsLost: Bool) -> Void)?

    /// Whether a record with the `Ts` of the local row is no conflict, as docs/faces/rest.md advises; the document does not say.
    var comparesTs = false

    /// Of each table, what docs/faces/rest.md says may come again.
    private var repeatable: [String: RepeatableRows] = [:]

    struct LostAnswer: Error {}

    /// - Parameter columns: of each table, all of them text.
    init(
        _ name: String, port: UInt16, owner: String = "abc", in folder: TestFolder, _ columns: [String: [String]]
    ) throws {
        self.name = name
        self.columns = columns
        client = DeviceClient(port: port, headers: ["X-Sync-Id": owner, "X-Device-Id": name])
        database = try Connection(path: "\(folder.path)/\(name).db", access: .readWriteCreate())
        for (table, columns) in columns {
            try database.execute(
                """
                CREATE TABLE IF NOT EXISTS \(table)(id TEXT PRIMARY KEY, \(columns.map { "\($0) TEXT, " }.joined())\
                Ts INTEGER, Deleted INTEGER NOT NULL DEFAULT 0, Dirty INTEGER NOT NULL DEFAULT 0)
                """)
        }
    }

    deinit { try? database.close() }

    // MARK: What the user does

    func insert(_ table: String, _ id: String, _ values: [String: String]) throws {
        try run(
            "INSERT INTO \(table)(id, \(values.keys.joined(separator: ", ")), Dirty) "
                + "VALUES(?, \(values.map { _ in "?" }.joined(separator: ", ")), 1)", [id] + values.values)
    }

    func update(_ table: String, _ id: String, _ values: [String: String]) throws {
        let set = values.keys.map { "\($0) = ?" }.joined(separator: ", ")
        try run("UPDATE \(table) SET \(set), Dirty = 1 WHERE id = ?", values.values + [id])
    }

    func delete(_ table: String, _ id: String) throws {
        try run("UPDATE \(table) SET Deleted = 1, Dirty = 1 WHERE id = ?", [id])
    }

    // MARK: The nine steps

    func sync() async throws {
        moments = 0
        // 1. Initialize the list of tables required to sync.
        let tables = try await request("GET", "/rest").json().array.compactMap(\.string)
        try await moment()
        for table in tables { try await download(table) }
        for table in tables {
            try await insertOnServer(table)
            try await updateOnServer(table)
        }
        // 9. Delete records where Deleted=true and Dirty=false.
        for table in tables { try run("DELETE FROM \(table) WHERE Deleted = 1 AND Dirty = 0", []) }
    }

    private func moment() async throws {
        try await hook?(moments)
        moments += 1
    }

    /// Steps 2 to 4.
    func download(_ table: String) async throws {
        // 2. Get the latest Ts.
        let ts = try latestTs(table)
        try await moment()
        // 3. Call the service.
        let changes = try await request("GET", "/rest/\(table)?ts=\(ts)").json().array
        try await moment()
        // 4. Insert or update the received changes into local storage.
        for record in changes { try apply(record, to: table) }
        repeatable[table, default: RepeatableRows()].downloaded(changes)
        try await moment()
    }

    /// The rows that the next download may have once more, although the device has them as they are.
    func mayComeAgain(_ table: String) -> Set<String> { repeatable[table]?.ids ?? [] }

    /// Step 4 for one record.
    private func apply(_ record: JSON, to table: String) throws {
        let id = try #require(record["id"].string)
        if let local = try row(table, id) {
            if comparesTs, local["Dirty"] == "1", local["Ts"] == record["Ts"].int.map({ "\($0)" }) { return }
            // The server wins, and the user is told.
            if local["Dirty"] == "1" { conflicts.append(id) }
            try replace(record, table, id)
        } else {
            try run("INSERT INTO \(table)(id) VALUES(?)", [id])
            try replace(record, table, id)
        }
    }

    private func replace(_ record: JSON, _ table: String, _ id: String) throws {
        let names = columns[table] ?? []
        let set = names.map { "\($0) = ?, " }.joined()
        try run(
            "UPDATE \(table) SET \(set)Ts = ?, Deleted = ?, Dirty = 0 WHERE id = ?",
            names.map { record[$0].string } + [
                "\(record["Ts"].int ?? 0)", record["Deleted"].bool == true ? "1" : "0", id,
            ])
    }

    /// Steps 5 and 6: inserts, one record after the other.
    private func insertOnServer(_ table: String) async throws {
        for record in try rows("SELECT * FROM \(table) WHERE Dirty = 1 AND Ts IS NULL ORDER BY id", table) {
            try await upload(record, "POST", table)
        }
    }

    /// Steps 7 and 8: updates.
    private func updateOnServer(_ table: String) async throws {
        for record in try rows("SELECT * FROM \(table) WHERE Dirty = 1 AND Ts IS NOT NULL ORDER BY id", table) {
            try await upload(record, "PUT", table)
        }
    }

    private func upload(_ local: [String: String?], _ method: String, _ table: String) async throws {
        let id = try #require(local["id"] ?? nil)
        try await moment()
        let answer = try await request(method, "/rest/\(table)", body(local, table))
        try await moment()
        switch answer.status {
        case 200, 201:
            // Get the Ts from the response, update the record with it, and reset the dirty flag.
            let ts = try #require(try answer.json()["Ts"].int)
            try run("UPDATE \(table) SET Ts = ?, Dirty = 0 WHERE id = ?", ["\(ts)", id])
            try repeatable[table, default: RepeatableRows()].uploaded(answer.json(), isConflict: false)
        case 409:
            conflicts.append(id)
            let record = try answer.json()["record"]
            try replace(record, table, id)
            try repeatable[table, default: RepeatableRows()].uploaded(record, isConflict: true)
        default:
            throw DeviceClient.Failure(description: String(decoding: answer.body, as: UTF8.self), status: answer.status)
        }
    }

    func body(_ local: [String: String?], _ table: String) -> JSON {
        var record: JSON = ["id": JSON((local["id"] ?? nil) ?? ""), "Deleted": JSON(local["Deleted"] == "1")]
        for name in columns[table] ?? [] {
            record = record.with(name, (local[name] ?? nil).map { JSON($0) } ?? JSON(NSNull()))
        }
        if let ts = (local["Ts"] ?? nil).flatMap({ Int($0) }) { record = record.with("Ts", JSON(ts)) }
        return record
    }

    // MARK: Requests

    @discardableResult
    func request(_ method: String, _ path: String, _ body: JSON? = nil) async throws -> DeviceClient.Answer {
        var answer = try await client.send(method, path, body)
        // Durable, and its outcome not known yet: the request is repeated.
        while answer.status == 503 { answer = try await client.send(method, path, body) }
        let isLost = losesAnswer("\(method) \(path)")
        if let id = body?["id"].string, (200...201).contains(answer.status) {
            hasStored?(id, isLost)
            if isLost, let table = path.split(separator: "/").last.map(String.init) {
                repeatable[table, default: RepeatableRows()].unanswered.insert(id)
            }
        }
        if isLost { throw LostAnswer() }
        if method == "GET", answer.status != 200 {
            throw DeviceClient.Failure(description: String(decoding: answer.body, as: UTF8.self), status: answer.status)
        }
        return answer
    }

    // MARK: The file

    func latestTs(_ table: String) throws -> Int {
        var statement = try database.prepare("SELECT ifnull(Ts, 0) FROM \(table) ORDER BY Ts DESC LIMIT 1")
        return try statement.step() ? Int(try statement.integer(at: 0)) : 0
    }

    /// The ids that the user sees.
    func ids(_ table: String) throws -> [String] {
        try rows("SELECT * FROM \(table) WHERE Deleted = 0 ORDER BY id", table).compactMap { $0["id"] ?? nil }
    }

    /// Every row, as the server would send it.
    func records(_ table: String) throws -> [JSON] {
        try rows("SELECT * FROM \(table) ORDER BY id", table).map { body($0, table) }
    }

    func hasDirtyRows(_ table: String) throws -> Bool {
        try !rows("SELECT * FROM \(table) WHERE Dirty = 1", table).isEmpty
    }

    func row(_ table: String, _ id: String) throws -> [String: String?]? {
        try rows("SELECT * FROM \(table) WHERE id = '\(id)'", table).first
    }

    private func rows(_ sql: String, _ table: String) throws -> [[String: String?]] {
        let names = ["id"] + (columns[table] ?? []) + ["Ts", "Deleted", "Dirty"]
        var statement = try database.prepare(sql)
        var rows: [[String: String?]] = []
        while try statement.step() {
            var row: [String: String?] = [:]
            for (index, name) in names.enumerated() {
                if statement.isNull(at: index) {
                    row.updateValue(nil, forKey: name)
                } else if ["Ts", "Deleted", "Dirty"].contains(name) {
                    row[name] = "\(try statement.integer(at: index))"
                } else {
                    row[name] = try statement.text(at: index)
                }
            }
            rows.append(row)
        }
        return rows
    }

    private func run(_ sql: String, _ values: [String?]) throws {
        var statement = try database.prepare(sql)
        for (index, value) in values.enumerated() {
            if let value {
                try statement.bind(text: value, at: index + 1)
            } else {
                try statement.bindNull(at: index + 1)
            }
        }
        try statement.run()
    }
}

/// The rows of a table that may come again, as docs/faces/rest.md says: those below a `Ts` that is from an upload.
///
/// Rows that are deleted leave the device with the sync, and their `Ts` with them.
private struct RepeatableRows {
    private(set) var ids: Set<String> = []
    /// Rows that conflicts have shown since the last download.
    private var shown: Set<String> = []
    /// The greatest `Ts` that the device has from an upload.
    private var uploadedTs = 0
    /// Rows whose upload was stored, and its answer lost: a download has the `Ts` of that upload.
    var unanswered: Set<String> = []

    mutating func downloaded(_ records: [JSON]) {
        shown = []
        guard let newest = records.last(where: { $0["Deleted"] == false }), let ts = newest["Ts"].int else { return }
        if unanswered.contains(newest["id"].string ?? "") { uploadedTs = max(uploadedTs, ts) }
        // Otherwise the next request names the row of another device, which is from this answer alone.
        ids = ts > uploadedTs ? [] : ids.union(records.compactMap { $0["id"].string })
    }

    /// An upload was answered, which shows that the device has what it downloaded before.
    mutating func uploaded(_ record: JSON, isConflict: Bool) throws {
        let id = try #require(record["id"].string)
        if isConflict { shown.insert(id) }
        if record["Deleted"] == true { return }
        ids = shown
        uploadedTs = max(uploadedTs, try #require(record["Ts"].int))
    }
}

extension DeviceClient {
    /// A request with any method.
    func send(_ method: String, _ path: String, _ body: JSON?) async throws -> Answer {
        try await send(
            method, path,
            body.map { try JSONSerialization.data(withJSONObject: $0.value, options: .fragmentsAllowed) })
    }
}
