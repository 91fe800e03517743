import Foundation
import SQLite
import Testing

/// A client of the device tracker's document, written from it alone, on a real SQLite file: dirty flags, `serverId`, the table
/// DownloadedTracker, parents before children, and `createdOn` as the fall-back that finds a document without `serverId`.
final class TrackerDevice {
    /// A moment of a sync between two requests, or between one and what is done with its answer.
    typealias Hook = (_ moment: Int) async throws -> Void

    /// A table with its columns, all of them text.
    struct Collection: Sendable {
        let name: String
        let columns: [String]
        /// The column that refers to the parent's documents: `#` and its `createdOn` until it is uploaded.
        var reference: String?
    }

    let name: String
    let path: String
    var client: DeviceClient
    private let database: Connection
    /// Parents first.
    private let collections: [Collection]
    var hook: Hook?
    private(set) var moments = 0
    /// Requests whose answers are lost.
    var losesAnswer: (_ request: String) -> Bool = { _ in false }
    private(set) var requests: [String] = []
    /// Whether `downloadedTill` is the greatest `updatedOn` of the table after a download, or of the rows that came.
    var countsOwnRows = false
    /// The documents that a download or a conflict has replaced although they were dirty, by `createdOn`.
    var overwritten: Set<String> = []

    /// Of all downloads.
    private(set) var downloadedCount = 0

    struct LostAnswer: Error {}

    init(
        _ name: String, port: UInt16, owner: String = "abc", in folder: TestFolder, _ collections: [Collection]
    ) throws {
        self.name = name
        self.collections = collections
        client = DeviceClient(port: port, headers: ["X-Sync-Id": owner, "X-Device-Id": name])
        path = "\(folder.path)/\(name).db"
        // The file alone holds everything, so that tests may copy it.
        database = try Connection(
            path: path, access: .readWriteCreate(WriteOptions(journal: .delete)))
        for collection in collections {
            let columns = collection.columns.map { "\($0) TEXT, " }.joined()
            try database.execute(
                """
                CREATE TABLE IF NOT EXISTS \(collection.name)(id INTEGER PRIMARY KEY, serverId TEXT UNIQUE, \(columns)\
                createdOn TEXT, updatedOn TEXT NOT NULL, isDirty INTEGER NOT NULL DEFAULT 0, \
                deleted INTEGER NOT NULL DEFAULT 0, firstSent TEXT)
                """)
        }
        try database.execute(
            "CREATE TABLE IF NOT EXISTS DownloadedTracker(tableName TEXT PRIMARY KEY, downloadedTill TEXT NOT NULL)")
    }

    deinit { try? database.close() }

    // MARK: What the user does

    /// The time of an edit, by the device's clock.
    static func now() -> String {
        let microseconds = Int(Date().timeIntervalSince1970 * 1_000_000)
        let (seconds, fraction) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        let text = ISO8601DateFormatter().string(from: Date(timeIntervalSince1970: Double(seconds)))
        let digits = String(fraction)
        return text.dropLast() + "." + String(repeating: "0", count: 6 - digits.count) + digits + "Z"
    }

    /// - Returns: `createdOn`.
    @discardableResult
    func create(_ table: String, _ values: [String: String], at time: String = now()) throws -> String {
        try run(
            "INSERT INTO \(table)(\(values.keys.joined(separator: ", ")), createdOn, updatedOn, isDirty) "
                + "VALUES(\(values.map { _ in "?" }.joined(separator: ", ")), ?, ?, 1)", values.values + [time, time])
        return time
    }

    /// Changes documents in which a column has a value.
    func edit(_ table: String, where column: String, is value: String, _ values: [String: String]) throws {
        let set = values.keys.map { "\($0) = ?, " }.joined()
        try run(
            "UPDATE \(table) SET \(set)updatedOn = ?, isDirty = 1 WHERE \(column) = ?",
            values.values + [Self.now(), value])
    }

    func delete(_ table: String, where column: String, is value: String) throws {
        try run("UPDATE \(table) SET deleted = 1, isDirty = 1 WHERE \(column) = ?", [value])
    }

    /// The value of a reference to a document of this device.
    func reference(to table: String, where column: String, is value: String) throws -> String {
        let row = try #require(try rows(table, "\(column) = '\(value)'").first)
        return row["serverId"].flatMap(\.self) ?? "#\((row["createdOn"] ?? nil) ?? "")"
    }

    // MARK: A sync

    func sync() async throws {
        moments = 0
        try await download()
        try await upload()
        // 3. Add or update this device.
        try await request("PUT", "/tracker/devices/\(name)")
    }

    private func moment() async throws {
        try await hook?(moments)
        moments += 1
    }

    func download() async throws {
        // 1. Get all devices that uploaded after max(downloadedTill).
        let greatest = try text("SELECT max(downloadedTill) FROM DownloadedTracker")
        try await moment()
        let devices = try await request("GET", "/tracker/devices" + Self.query(greatest)).json().array
        try await moment()
        if devices.isEmpty {
            // 2. No other device is in use.
            for collection in collections { try track(collection.name) }
            return
        }
        // 3. to 7., parents first.
        for collection in collections { try await download(collection) }
    }

    private func download(_ collection: Collection) async throws {
        let till = try text(
            "SELECT downloadedTill FROM DownloadedTracker WHERE tableName = '\(collection.name)'")
        let documents = try await request("GET", "/tracker/\(collection.name)" + Self.query(till)).json().array
        try await moment()
        downloadedCount += documents.count
        for document in documents { try save(document, collection) }
        if countsOwnRows {
            try track(collection.name)
        } else if let newest = documents.compactMap({ $0["updatedOn"].string }).max() {
            try track(collection.name, newest)
        }
        try await moment()
    }

    private static func query(_ after: String?) -> String { after.map { "?after=\($0)" } ?? "" }

    private func track(_ table: String, _ till: String? = nil) throws {
        guard let newest = try till ?? text("SELECT max(updatedOn) FROM \(table)") else { return }
        try run("INSERT OR REPLACE INTO DownloadedTracker VALUES(?, ?)", [table, newest])
    }

    /// Saves a document over the one with its `serverId`, else over one without any that was created at the same time.
    private func save(_ document: JSON, _ collection: Collection) throws {
        let id = try #require(document["serverId"].string)
        let known = try rows(collection.name, "serverId = '\(id)'").first
        let createdOn = document["createdOn"].string
        let local =
            try known
            ?? createdOn.flatMap {
                try rows(collection.name, "serverId IS NULL AND createdOn = '\($0)'").first
            }
        if local?["isDirty"] == "1", let createdOn { overwritten.insert(createdOn) }
        let row = local?["id"] ?? nil
        if document["deleted"].bool == true {
            try resolve(createdOn, id)
            if let row { try run("DELETE FROM \(collection.name) WHERE id = ?", [row]) }
            return
        }
        if let row {
            try replace(document, collection, row)
        } else {
            try run("INSERT INTO \(collection.name)(serverId, updatedOn) VALUES(?, '')", [id])
            try replace(document, collection, try #require(try text("SELECT CAST(last_insert_rowid() AS TEXT)")))
        }
    }

    private func replace(_ document: JSON, _ collection: Collection, _ row: String) throws {
        let set = collection.columns.map { "\($0) = ?, " }.joined()
        try run(
            "UPDATE \(collection.name) SET \(set)serverId = ?, createdOn = ?, updatedOn = ?, isDirty = 0, deleted = 0, "
                + "firstSent = NULL WHERE id = ?",
            collection.columns.map { document[$0].string } + [
                document["serverId"].string, document["createdOn"].string, document["updatedOn"].string, row,
            ])
        try resolve(document["createdOn"].string, document["serverId"].string)
    }

    /// Names a document by its `serverId` in its children.
    private func resolve(_ createdOn: String?, _ serverID: String?) throws {
        guard let createdOn else { return }
        for child in collections {
            guard let column = child.reference else { continue }
            try run("UPDATE \(child.name) SET \(column) = ? WHERE \(column) = ?", [serverID, "#\(createdOn)"])
        }
    }

    func upload() async throws {
        for collection in collections {
            for row in try rows(collection.name, "isDirty = 1") { try await upload(row, collection) }
        }
    }

    private func upload(_ row: [String: String?], _ collection: Collection) async throws {
        let id = try #require(row["id"] ?? nil)
        let current = try document(row, collection)
        let answer: DeviceClient.Answer
        var sent = current
        try await moment()
        if let serverID = row["serverId"] ?? nil {
            let path = "/tracker/\(collection.name)/\(serverID)"
            answer =
                row["deleted"] == "1" ? try await request("DELETE", path) : try await request("PUT", path, current)
        } else {
            // A create is sent again exactly as the first time.
            if let first = row["firstSent"] ?? nil {
                sent = JSON(try JSONSerialization.jsonObject(with: Data(first.utf8)))
            } else if row["deleted"] == "1" {
                return try run("DELETE FROM \(collection.name) WHERE id = ?", [id])
            }
            try run("UPDATE \(collection.name) SET firstSent = ? WHERE id = ?", [sent.description, id])
            answer = try await request("POST", "/tracker/\(collection.name)", sent)
        }
        try await moment()
        if answer.status == 409 {
            if let createdOn = row["createdOn"] ?? nil { overwritten.insert(createdOn) }
            return try replace(try answer.json()["record"], collection, id)
        }
        guard [200, 201].contains(answer.status) else {
            throw DeviceClient.Failure(description: String(decoding: answer.body, as: UTF8.self), status: answer.status)
        }
        let verdict = try answer.json()
        let serverID = try #require(verdict["serverId"].string)
        // Of a document that another device has deleted, too: its children are still to be sent.
        try resolve(row["createdOn"] ?? nil, serverID)
        if verdict["deleted"].bool == true {
            return try run("DELETE FROM \(collection.name) WHERE id = ?", [id])
        }
        // Of one that came with a download, too, the downloaded one is kept.
        if try !rows(collection.name, "serverId = '\(serverID)' AND id <> \(id)").isEmpty {
            return try run("DELETE FROM \(collection.name) WHERE id = ?", [id])
        }
        let isDirty = sent != current || row["deleted"] == "1"
        try run(
            "UPDATE \(collection.name) SET serverId = ?, updatedOn = ?, isDirty = ? WHERE id = ?",
            [serverID, verdict["updatedOn"].string, isDirty ? "1" : "0", id])
    }

    private func document(_ row: [String: String?], _ collection: Collection) throws -> JSON {
        var document: JSON = [:]
        for name in collection.columns + ["serverId", "createdOn", "updatedOn"] {
            document = document.with(name, (row[name] ?? nil).map { JSON($0) } ?? JSON(NSNull()))
        }
        return document
    }

    // MARK: Requests

    @discardableResult
    func request(_ method: String, _ path: String, _ body: JSON? = nil) async throws -> DeviceClient.Answer {
        requests.append("\(method) \(path)")
        var answer = try await client.send(method, path, body)
        // Durable, and its outcome not known yet: the request is repeated.
        while answer.status == 503 { answer = try await client.send(method, path, body) }
        if losesAnswer("\(method) \(path)") { throw LostAnswer() }
        if method == "GET", answer.status != 200 {
            throw DeviceClient.Failure(description: String(decoding: answer.body, as: UTF8.self), status: answer.status)
        }
        return answer
    }

    // MARK: The file

    /// Every document, as the server has it: `serverId` and columns.
    func documents(_ table: String) throws -> [JSON] {
        let collection = try #require(collections.first { $0.name == table })
        return try rows(table, "deleted = 0").map { row in
            collection.columns.reduce(["serverId": JSON((row["serverId"] ?? nil) ?? "none")] as JSON) {
                $0.with($1, (row[$1] ?? nil).map { JSON($0) } ?? JSON(NSNull()))
            }
        }.sortedByText
    }

    func values(_ table: String, _ column: String) throws -> [String] {
        try rows(table, "deleted = 0").compactMap { $0[column] ?? nil }.sorted()
    }

    var hasDirtyDocuments: Bool {
        get throws { try collections.contains { try !rows($0.name, "isDirty = 1").isEmpty } }
    }

    /// The greatest time that the server gave this device.
    var newest: String? {
        get throws {
            try collections.compactMap {
                try text("SELECT max(updatedOn) FROM \($0.name) WHERE isDirty = 0 AND serverId IS NOT NULL")
            }.max()
        }
    }

    var downloadedTill: String? {
        get throws { try text("SELECT max(downloadedTill) FROM DownloadedTracker") }
    }

    private func rows(_ table: String, _ condition: String) throws -> [[String: String?]] {
        let columns = collections.first { $0.name == table }?.columns ?? []
        let names = ["id", "serverId"] + columns + ["createdOn", "updatedOn", "isDirty", "deleted", "firstSent"]
        let list = names.map { "CAST(\($0) AS TEXT)" }.joined(separator: ", ")
        var statement = try database.prepare("SELECT \(list) FROM \(table) WHERE \(condition) ORDER BY id")
        var rows: [[String: String?]] = []
        while try statement.step() {
            var row: [String: String?] = [:]
            for (index, name) in names.enumerated() {
                row.updateValue(statement.isNull(at: index) ? nil : try statement.text(at: index), forKey: name)
            }
            rows.append(row)
        }
        return rows
    }

    private func text(_ sql: String) throws -> String? {
        var statement = try database.prepare(sql)
        return try statement.step() && !statement.isNull(at: 0) ? try statement.text(at: 0) : nil
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
