import JSONText
import SQLite

/// The baseline: the same rows in a SQLite file alone, by prepared statements, in transactions and with settings like the
/// store's.
///
/// Used by one thread.
final class RawDatabase {
    /// Rows of a transaction: about what the store joins under load.
    static let rowsOfTransaction = 1600

    private let connection: Connection
    private var timeStamp: Int64 = 0

    /// Opens a file, or makes it, for the time of a closure.
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
        try connection.execute(Self.creation)
    }

    private static let creation = """
        CREATE TABLE IF NOT EXISTS note (
            sync_id TEXT NOT NULL, id TEXT NOT NULL, knowledge_id TEXT NOT NULL, time_stamp INTEGER NOT NULL,
            version INTEGER NOT NULL, deleted INTEGER NOT NULL, created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL, writer_sync_id TEXT NOT NULL, writer_knowledge_id TEXT NOT NULL,
            writer_batch INTEGER, exact INTEGER NOT NULL, others_time_stamp INTEGER NOT NULL,
            list TEXT NOT NULL, title TEXT NOT NULL, body TEXT, done INTEGER NOT NULL, position REAL NOT NULL, due TEXT,
            PRIMARY KEY (sync_id, id)
        ) STRICT
        """

    private static let upsert: StaticString = """
        INSERT INTO note VALUES
            (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
        ON CONFLICT (sync_id, id) DO UPDATE SET
            knowledge_id = excluded.knowledge_id, time_stamp = excluded.time_stamp, version = excluded.version,
            deleted = excluded.deleted, created_at = excluded.created_at, updated_at = excluded.updated_at,
            writer_sync_id = excluded.writer_sync_id, writer_knowledge_id = excluded.writer_knowledge_id,
            writer_batch = excluded.writer_batch, exact = excluded.exact,
            others_time_stamp = excluded.others_time_stamp, list = excluded.list, title = excluded.title,
            body = excluded.body, done = excluded.done, position = excluded.position, due = excluded.due
        """

    /// Writes rows of owners in transactions; the seconds it took.
    func write(_ rows: [(owner: String, row: Workload.Row)]) throws -> Double {
        let start = SystemCall.nanoseconds()
        for first in stride(from: 0, to: rows.count, by: Self.rowsOfTransaction) {
            try connection.transaction(.immediate) {
                var statement = try connection.statement(Self.upsert)
                for (owner, row) in rows[first..<min(first + Self.rowsOfTransaction, rows.count)] {
                    try write(row, of: owner, with: &statement)
                }
            }
        }
        return Double(SystemCall.nanoseconds() - start) / 1e9
    }

    private func write(_ row: Workload.Row, of owner: String, with statement: inout Statement) throws {
        timeStamp += 1
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

    /// Reads all rows and spells them as a pull does; how many they are, and the seconds it took.
    func scan() throws -> (rows: Int, seconds: Double) {
        let start = SystemCall.nanoseconds()
        var writer = JSONWriter(capacity: 5 << 20)
        var rows = 0
        var statement = try connection.statement(
            """
            SELECT id, sync_id, knowledge_id, time_stamp, version, deleted, list, title, body, done, position, due,
                writer_sync_id, writer_knowledge_id FROM note
            """)
        while try statement.step() {
            rows += 1
            try Self.spell(statement, to: &writer)
            // The size of a pull's page.
            if writer.bytes.count > 4 << 20 { writer.removeAll() }
        }
        return (rows, Double(SystemCall.nanoseconds() - start) / 1e9)
    }

    private static func spell(_ row: borrowing Statement, to writer: inout JSONWriter) throws {
        writer.beginObject()
        writer.name("table")
        writer.value("note" as StaticString)
        writer.name("id")
        try spellText(row, 0, to: &writer)
        writer.name("syncId")
        try spellText(row, 1, to: &writer)
        writer.name("knowledgeId")
        try spellText(row, 2, to: &writer)
        writer.name("timeStamp")
        writer.value(try row.integer(at: 3))
        writer.name("version")
        writer.value(try row.integer(at: 4))
        writer.name("deleted")
        writer.value(try row.integer(at: 5) != 0)
        writer.name("values")
        writer.beginObject()
        writer.name("list")
        try spellText(row, 6, to: &writer)
        writer.name("title")
        try spellText(row, 7, to: &writer)
        writer.name("body")
        try spellText(row, 8, to: &writer)
        writer.name("done")
        writer.value(try row.integer(at: 9) != 0)
        writer.name("position")
        writer.value(try row.double(at: 10))
        writer.name("due")
        try spellText(row, 11, to: &writer)
        writer.endObject()
        writer.name("writer")
        writer.beginObject()
        writer.name("syncId")
        try spellText(row, 12, to: &writer)
        writer.name("knowledgeId")
        try spellText(row, 13, to: &writer)
        writer.endObject()
        writer.endObject()
    }

    private static func spellText(_ row: borrowing Statement, _ column: Int, to writer: inout JSONWriter) throws {
        try row.withBytes(at: column) { bytes in
            bytes.withUnsafeBytes { raw in
                raw.withMemoryRebound(to: UInt8.self) { writer.value($0.span) }
            }
        }
    }
}
