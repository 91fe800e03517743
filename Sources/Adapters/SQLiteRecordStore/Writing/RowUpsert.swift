import CanonicalValues
import RecordStore
import RelationalTables
import SQLite
import SyncModel

/// The statement that writes rows of one table with a number of columns; a class, since a dictionary cannot hold a
/// noncopyable value.
final class RowUpsert {
    private var statement: Statement
    private let table: Table
    private var reader = CanonicalValueReader()
    /// The bound values: consecutive rows mostly share owner and writer.
    private var bound: (owner: SyncID, knowledgeID: KnowledgeID, writer: Device)?

    init(_ statement: consuming Statement, _ table: Table) {
        self.statement = statement
        self.table = table
    }

    /// - Throws: `RecordStoreError` if a constraint or a value of this row fails, else `SQLiteError`.
    func write(_ row: OrderedRow) throws {
        do {
            try bindRow(row)
            try row.values.forEachColumn { column, json in try bind(json, column: column) }
            try statement.run()
        } catch let error as CanonicalValueError {
            throw RecordStoreError.refusedRow(row.key, table: table.name, reason: "\(error)")
        } catch let error as SQLiteError where error.isConstraint || error.code == .tooBig {
            throw RecordStoreError.refusedRow(row.key, table: table.name, reason: error.message)
        }
    }

    /// Binds the columns of ``RowColumns``, in their order.
    private func bindRow(_ row: OrderedRow) throws(SQLiteError) {
        // `nil` until all columns are bound, so that a failure leaves nothing marked as bound.
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

    private func bind(_ json: UnsafeBufferPointer<UInt8>, column: Int) throws {
        let index = RowColumns.all.count + column + 1
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
}
