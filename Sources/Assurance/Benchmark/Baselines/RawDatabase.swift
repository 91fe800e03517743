import JSONText
import SQLite

/// A SQLite file with the rows of the baselines, with the store's settings.
final class RawDatabase: RawUpsert.Session {
    private let connection: Connection

    static func use<Value>(_ path: String, _ body: (RawDatabase) throws -> Value) throws -> Value {
        let database = try RawDatabase(path: path)
        let result = Result { try body(database) }
        try database.connection.close()
        return try result.get()
    }

    private init(path: String) throws {
        connection = try Connection(
            path: path, access: .readWriteCreate(WriteOptions(synchronous: .normal, walAutocheckpoint: 4000)),
            options: ConnectionOptions(cacheSize: 64 << 20))
        let columns = RawUpsert.columns.map { "\($0.name) \($0.sqlite)" }.joined(separator: ", ")
        try connection.execute("CREATE TABLE IF NOT EXISTS note (\(columns), PRIMARY KEY (sync_id, id)) STRICT")
    }

    private static let upsert = RawUpsert.upsert(
        into: "note", "VALUES (\((1...RawUpsert.columns.count).map { "?\($0)" }.joined(separator: ", ")))")

    func write(_ rows: ArraySlice<RawUpsert.Row>, firstTimeStamp: Int64) throws {
        try connection.transaction(.immediate) {
            var statement = try connection.prepare(Self.upsert)
            for (number, row) in rows.enumerated() {
                try Self.write(row.row, of: row.owner, firstTimeStamp + Int64(number) + 1, with: &statement)
            }
        }
    }

    private static func write(
        _ row: Workload.Row, of owner: String, _ timeStamp: Int64, with statement: inout Statement
    ) throws {
        try statement.bind(text: owner, at: 1)
        try statement.bind(text: row.id.span.bytes, at: 2)
        try statement.bind(text: "k1", at: 3)
        try statement.bind(integer: timeStamp, at: 4)
        try statement.bind(integer: 1, at: 5)
        try statement.bind(integer: 0, at: 6)
        try statement.bind(integer: timeStamp, at: 7)
        try statement.bind(integer: timeStamp, at: 8)
        try statement.bind(text: owner, at: 9)
        try statement.bind(text: "k1", at: 10)
        try statement.bind(integer: timeStamp, at: 11)
        try statement.bind(integer: 1, at: 12)
        try statement.bind(integer: 0, at: 13)
        try statement.bind(text: row.list.span.bytes, at: 14)
        try statement.bind(text: row.title.span.bytes, at: 15)
        try statement.bind(text: row.body.span.bytes, at: 16)
        try statement.bind(integer: row.isDone ? 1 : 0, at: 17)
        try statement.bind(double: row.position, at: 18)
        try statement.bind(text: row.due.span.bytes, at: 19)
        try statement.run()
    }

    /// Reads all rows and renders them as a pull does; returns how many.
    func scan() throws -> Int {
        var writer = JSONWriter(capacity: 5 << 20)
        var rows = 0
        var statement = try connection.statement(
            """
            SELECT id, sync_id, knowledge_id, time_stamp, version, deleted, list, title, body, done, position, due,
                writer_sync_id, writer_knowledge_id FROM note
            """)
        while try statement.step() {
            rows += 1
            try Self.render(statement, to: &writer)
            // The size of a pull's page.
            if writer.bytes.count > 4 << 20 { writer.removeAll() }
        }
        return rows
    }

    private static func render(_ row: borrowing Statement, to writer: inout JSONWriter) throws {
        writer.beginObject()
        writer.name("table")
        writer.value("note" as StaticString)
        try render(row, "id", 0, to: &writer)
        try render(row, "syncId", 1, to: &writer)
        try render(row, "knowledgeId", 2, to: &writer)
        writer.name("timeStamp")
        writer.value(try row.integer(at: 3))
        writer.name("version")
        writer.value(try row.integer(at: 4))
        writer.name("deleted")
        writer.value(try row.integer(at: 5) != 0)
        writer.name("values")
        writer.beginObject()
        try render(row, "list", 6, to: &writer)
        try render(row, "title", 7, to: &writer)
        try render(row, "body", 8, to: &writer)
        writer.name("done")
        writer.value(try row.integer(at: 9) != 0)
        writer.name("position")
        writer.value(try row.double(at: 10))
        try render(row, "due", 11, to: &writer)
        writer.endObject()
        writer.name("writer")
        writer.beginObject()
        try render(row, "syncId", 12, to: &writer)
        try render(row, "knowledgeId", 13, to: &writer)
        writer.endObject()
        writer.endObject()
    }

    private static func render(
        _ row: borrowing Statement, _ name: StaticString, _ column: Int, to writer: inout JSONWriter
    ) throws {
        writer.name(name)
        try row.withBytes(at: column) { bytes in
            bytes.withUnsafeBytes { raw in
                raw.withMemoryRebound(to: UInt8.self) { writer.value($0.span) }
            }
        }
    }
}
