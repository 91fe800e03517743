import CanonicalValues
import RecordStore
import RelationalTables
import SQLite
import SyncModel

/// Decodes the current row of a statement whose columns are those of ``TableLayout``.
struct RowReader {
    private var writer = CanonicalValueWriter()
    /// The ids read last: consecutive rows mostly have the same, which saves new strings.
    private var lastKnowledgeID: KnowledgeID?
    private var lastWriter: Device?

    mutating func row(
        _ statement: borrowing Statement, key: RowKey, columns: ArraySlice<Column>
    ) throws -> OrderedRow {
        let batch: Int64? = statement.isNull(at: 8) ? nil : try statement.integer(at: 8)
        return OrderedRow(
            key: key, knowledgeID: try knowledgeID(statement), timeStamp: try Self.timeStamp(statement, at: 1),
            version: try statement.integer(at: 2), isDeleted: try statement.integer(at: 3) != 0,
            createdAt: try statement.integer(at: 4), updatedAt: try statement.integer(at: 5),
            writer: try device(statement), writerBatch: batch, isExact: try statement.integer(at: 9) != 0,
            othersTimeStamp: try Self.timeStamp(statement, at: 10), values: try values(statement, columns))
    }

    static func timeStamp(_ statement: borrowing Statement, at column: Int) throws -> TimeStamp {
        guard let timeStamp = TimeStamp(rawValue: try statement.integer(at: column)) else {
            throw RecordStoreError.corrupt("a row has a timeStamp out of range")
        }
        return timeStamp
    }

    static func id<ID: OpaqueID>(_ statement: borrowing Statement, at column: Int) throws -> ID {
        guard let id = ID(try statement.text(at: column)) else {
            throw RecordStoreError.corrupt("a row has an invalid id")
        }
        return id
    }

    private mutating func knowledgeID(_ statement: borrowing Statement) throws -> KnowledgeID {
        if let last = lastKnowledgeID, try Self.holds(last, statement, at: 0) { return last }
        let id: KnowledgeID = try Self.id(statement, at: 0)
        lastKnowledgeID = id
        return id
    }

    private mutating func device(_ statement: borrowing Statement) throws -> Device {
        if let last = lastWriter, try Self.holds(last.caller, statement, at: 6),
            try Self.holds(last.knowledgeID, statement, at: 7)
        {
            return last
        }
        let device = Device(caller: try Self.id(statement, at: 6), knowledgeID: try Self.id(statement, at: 7))
        lastWriter = device
        return device
    }

    private static func holds(_ id: some OpaqueID, _ statement: borrowing Statement, at column: Int) throws -> Bool {
        try statement.withBytes(at: column) { id.hasBytes($0) }
    }

    private mutating func values(_ statement: borrowing Statement, _ columns: ArraySlice<Column>) throws -> RowValues {
        var values = RowValues()
        values.reserve(columns.count * 16)
        for (index, column) in columns.enumerated() {
            try write(statement, at: RowColumns.readCount + index, as: column.type)
            values.append(writer.json)
        }
        return values
    }

    private mutating func write(_ statement: borrowing Statement, at column: Int, as type: SyncModel.ColumnType) throws
    {
        if statement.isNull(at: column) { return writer.writeNull() }
        switch type {
        case .integer: writer.write(integer: try statement.integer(at: column))
        case .boolean: writer.write(boolean: try statement.integer(at: column) != 0)
        case .real: try writer.write(real: try statement.double(at: column))
        case .bytes:
            try statement.withBytes(at: column) { raw in
                raw.withUnsafeBytes { writer.write(bytes: $0.assumingMemoryBound(to: UInt8.self).span) }
            }
        case .text, .decimal, .uuid, .timestamp, .date, .json:
            try statement.withBytes(at: column) { raw in
                raw.withUnsafeBytes { writer.write(text: $0.assumingMemoryBound(to: UInt8.self).span, as: type) }
            }
        }
    }
}
