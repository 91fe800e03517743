import CanonicalValues
import RecordStore
import SQLite
import SyncModel

/// The statement that writes rows of one table with so many columns.
struct RowUpsert: ~Copyable {
    struct Shape: Hashable {
        let table: Int
        let columns: Int
    }

    /// Holds a statement in a dictionary, which takes no values that cannot be copied.
    final class Box {
        var upsert: RowUpsert

        init(_ upsert: consuming RowUpsert) {
            self.upsert = upsert
        }
    }

    private var statement: Statement
    private let table: Table
    private var reader = CanonicalValueReader()
    /// What is bound already: most rows that follow each other share owner and writer.
    private var bound: (owner: SyncID, knowledgeID: KnowledgeID, writer: Device)?

    init(_ statement: consuming Statement, _ table: Table) {
        self.statement = statement
        self.table = table
    }

    /// Writes a row.
    ///
    /// - Throws: `RecordStoreError` where the table or the values refuse it, else `SQLiteError`.
    mutating func write(_ row: OrderedRow) throws {
        do {
            try bindRow(row)
            try row.values.forEachColumn { column, json in try bind(json, column: column) }
            try statement.run()
        } catch let error as CanonicalValueError {
            throw refusal(of: row, "\(error)")
        } catch let error as SQLiteError where error.isConstraint || error.code == .tooBig {
            throw refusal(of: row, error.message)
        }
    }

    /// Binds the columns of ``RowColumns``, in their order.
    private mutating func bindRow(_ row: OrderedRow) throws(SQLiteError) {
        // Nothing is taken for bound after a failure.
        let bound = bound.take()
        if bound?.owner != row.key.owner { try statement.bind(text: row.key.owner.text, at: 1) }
        try statement.bind(text: row.key.id.text, at: 2)
        if bound?.knowledgeID != row.knowledgeID {
            try statement.bind(text: row.knowledgeID.text, at: 3)
        }
        try statement.bind(integer: row.timeStamp.rawValue, at: 4)
        try statement.bind(integer: row.version, at: 5)
        try statement.bind(integer: row.isDeleted ? 1 : 0, at: 6)
        try statement.bind(integer: row.createdAt, at: 7)
        try statement.bind(integer: row.updatedAt, at: 8)
        if bound?.writer != row.writer {
            try statement.bind(text: row.writer.caller.text, at: 9)
            try statement.bind(text: row.writer.knowledgeID.text, at: 10)
        }
        if let batch = row.writerBatch {
            try statement.bind(integer: batch, at: 11)
        } else {
            try statement.bindNull(at: 11)
        }
        try statement.bind(integer: row.isExact ? 1 : 0, at: 12)
        try statement.bind(integer: row.othersTimeStamp.rawValue, at: 13)
        self.bound = (row.key.owner, row.knowledgeID, row.writer)
    }

    private mutating func bind(_ json: UnsafeBufferPointer<UInt8>, column: Int) throws {
        let index = RowColumns.names.count + column + 1
        try reader.read(json, as: table.columns[column].type) { value in
            switch value {
            case .null: try statement.bindNull(at: index)
            case .integer(let integer): try statement.bind(integer: integer, at: index)
            case .real(let real): try statement.bind(double: real, at: index)
            case .text(let text): try statement.bind(text: text.bytes, at: index)
            case .bytes(let bytes): try statement.bind(blob: bytes.bytes, at: index)
            }
        }
    }

    /// Names the row, never a value.
    private func refusal(of row: OrderedRow, _ reason: String) -> RecordStoreError {
        RecordStoreError(
            .refusedRow(row.key),
            message: "table \(table.name) refused the row with sync_id \(row.key.owner) and id \(row.key.id): "
                + reason)
    }
}
