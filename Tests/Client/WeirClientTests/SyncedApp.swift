import Foundation
import TestResources
import WeirClient

/// An app with a database of its own, whose connection it writes to, and a server that applies every batch.
final class SyncedApp {
    /// Of each connection of the app; no test cuts the power.
    static let settings = "PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON;"

    let folder: TemporaryFolder
    /// The app's connection, which knows nothing of Weir.
    let database: Database
    let schema: ServerSchema
    private(set) var file: ClientFile?
    /// The server's last timeStamp.
    private(set) var timeStamp: Int64 = 100

    /// - Parameters:
    ///   - sql: what the app runs before Weir opens the file.
    ///   - server: the server's tables: `["item": ["title": "text"]]`.
    init(_ sql: String, server: [String: [String: String]] = [:], policy: String = "lastSyncWins") throws {
        folder = try TemporaryFolder()
        // An empty file is an empty database.
        try folder.write([], to: "test.sqlite")
        database = try Database(path: folder.file())
        try database.execute(Self.settings + sql)
        let tables = server.map { name, columns -> [String: Any] in
            let columns = columns.map { ["name": $0, "type": $1, "nullable": true] as [String: Any] }
            return ["name": name, "policy": policy, "rank": 0, "columns": columns]
        }
        schema = try ServerSchema(
            answer: Array(
                JSONSerialization.data(
                    withJSONObject: ["epoch": "e1", "schemaVersion": "s1", "tables": tables, "limits": [String: Int]()])
            ))
    }

    /// A table `item` with two columns, one row `a` of which the server has.
    static func withItem(_ more: String = "") throws -> SyncedApp {
        let app = try SyncedApp(
            "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT);" + more,
            server: ["item": ["title": "text", "note": "text"]])
        try app.open("item")
        try app.run("INSERT INTO item VALUES ('a', 'A', 'n')")
        try app.sync()
        return app
    }

    var path: String { folder.file() }

    @discardableResult
    func open(_ tables: String...) throws -> ClientFile {
        file?.database.close()
        let opened = try ClientFile(path: path, tables: tables)
        try opened.database.run("PRAGMA synchronous = OFF")
        file = opened
        return opened
    }

    /// Runs statements of the app with its connection.
    func run(_ sql: String) throws { try database.execute(sql) }

    /// The first column of all rows, as SQL literals.
    func query(_ sql: String) throws -> [String] { try database.map(sql) { "\($0.value(at: 0))" } }

    func freeze(changes: Int = 1000, bytes: Int = 1 << 20) throws -> FrozenBatch {
        try opened.freeze(
            BatchSession(knowledgeID: "k1", schema: schema, limits: BatchLimits(changes: changes, bytes: bytes)))
    }

    /// Adopts the rows of a table that were there before.
    @discardableResult
    func seed(_ table: Int = 0) throws -> Int {
        var count = 0
        var last: SQLValue?
        repeat { count += try opened.seed(opened.tables[table], after: &last) } while last != nil
        return count
    }

    /// The changes of the next batch as JSON, which stays without outcome.
    func frozen(changes: Int = 1000, bytes: Int = 1 << 20) throws -> [String] {
        try freeze(changes: changes, bytes: bytes).batch?.changeTexts ?? []
    }

    /// Ends the batch without outcome: the server gives each change the next timeStamp.
    func acknowledge() throws {
        guard let batch = try freeze().batch else { return }
        let first = timeStamp + 1
        timeStamp += Int64(batch.changes)
        try opened.acknowledge(batch.number, timeStamps: Array(first..<(first + Int64(batch.changes))))
    }

    /// Sends batches until nothing is pending.
    ///
    /// - Returns: all changes.
    @discardableResult
    func sync(changes: Int = 1000) throws -> [String] {
        var all: [String] = []
        while let batch = try freeze(changes: changes).batch {
            all += batch.changeTexts
            try acknowledge()
        }
        return all
    }

    var opened: ClientFile {
        guard let file else { preconditionFailure("the test opens the file first") }
        return file
    }
}

extension Batch {
    var text: String { String(decoding: body, as: UTF8.self) }

    /// The JSON of each change; no value of a test contains what this splits at.
    var changeTexts: [String] {
        let list = text.split(separator: #""changes":["#, maxSplits: 1)[1].dropLast(2)
        return list.split(separator: #"},{"table""#).enumerated().map { index, part in
            (index == 0 ? "" : #"{"table""#) + part + (part.hasSuffix("}") && list.hasSuffix(part) ? "" : "}")
        }
    }
}
