import CanonicalValues
import Postgres
import RecordStore
import RelationalTables
import SyncModel

/// Decodes rows of results whose columns are those of ``TableLayout``.
struct RowReader {
    private var writer = CanonicalValueWriter()
    private var text: [UInt8] = []
    /// The ids read last: consecutive rows mostly have the same, which saves new strings.
    private var lastKnowledgeID: KnowledgeID?
    private var lastWriter: Device?

    /// - Parameter first: the index of Weir's first column behind the key.
    mutating func row(
        _ rows: borrowing PostgresResult, _ row: Int, key: RowKey, columns: ArraySlice<Column>, from first: Int
    ) throws -> OrderedRow {
        let batch: Int64? = rows.isNull(row, first + 8) ? nil : try rows.bigint(row, first + 8)
        return OrderedRow(
            key: key, knowledgeID: try knowledgeID(rows, row, first),
            timeStamp: try Self.timeStamp(rows, row, first + 1), version: try rows.bigint(row, first + 2),
            isDeleted: try rows.boolean(row, first + 3), createdAt: try Self.time(rows, row, first + 4),
            updatedAt: try Self.time(rows, row, first + 5), writer: try device(rows, row, first + 6),
            writerBatch: batch, isExact: try rows.boolean(row, first + 9),
            othersTimeStamp: try Self.timeStamp(rows, row, first + 10),
            values: try values(rows, row, columns, from: first + RowColumns.readCount))
    }

    static func timeStamp(_ rows: borrowing PostgresResult, _ row: Int, _ column: Int) throws -> TimeStamp {
        guard let timeStamp = TimeStamp(rawValue: try rows.bigint(row, column)) else {
            throw RecordStoreError.corrupt("a row has a timeStamp out of range")
        }
        return timeStamp
    }

    static func id<ID: OpaqueID>(_ rows: borrowing PostgresResult, _ row: Int, _ column: Int) throws -> ID {
        guard let id = ID(try rows.text(row, column)) else {
            throw RecordStoreError.corrupt("a row has an invalid id")
        }
        return id
    }

    private static func time(_ rows: borrowing PostgresResult, _ row: Int, _ column: Int) throws -> Int64 {
        guard let time = PostgresEpoch.since1970(try rows.bigint(row, column)) else {
            throw RecordStoreError.corrupt("a row has a time out of range")
        }
        return time
    }

    private mutating func knowledgeID(
        _ rows: borrowing PostgresResult, _ row: Int, _ column: Int
    ) throws -> KnowledgeID {
        if let last = lastKnowledgeID, Self.holds(last, rows, row, column) { return last }
        let id: KnowledgeID = try Self.id(rows, row, column)
        lastKnowledgeID = id
        return id
    }

    private mutating func device(_ rows: borrowing PostgresResult, _ row: Int, _ column: Int) throws -> Device {
        if let last = lastWriter, Self.holds(last.caller, rows, row, column),
            Self.holds(last.knowledgeID, rows, row, column + 1)
        {
            return last
        }
        let device = Device(caller: try Self.id(rows, row, column), knowledgeID: try Self.id(rows, row, column + 1))
        lastWriter = device
        return device
    }

    private static func holds(
        _ id: some OpaqueID, _ rows: borrowing PostgresResult, _ row: Int, _ column: Int
    ) -> Bool {
        rows.withBytes(row, column) { id.hasBytes($0.bytes) }
    }

    private mutating func values(
        _ rows: borrowing PostgresResult, _ row: Int, _ columns: ArraySlice<Column>, from first: Int
    ) throws -> RowValues {
        var values = RowValues()
        values.reserve(columns.count * 16)
        for (index, column) in columns.enumerated() {
            try write(rows, row, first + index, as: column.type)
            values.append(writer.json)
        }
        return values
    }

    private mutating func write(
        _ rows: borrowing PostgresResult, _ row: Int, _ column: Int, as type: SyncModel.ColumnType
    ) throws {
        if rows.isNull(row, column) { return writer.writeNull() }
        switch type {
        case .integer: writer.write(integer: try rows.bigint(row, column))
        case .boolean: writer.write(boolean: try rows.boolean(row, column))
        case .real: try writer.write(real: try rows.double(row, column))
        case .bytes: rows.withBytes(row, column) { writer.write(bytes: $0) }
        case .text, .json: rows.withBytes(row, column) { writer.write(text: $0, as: type) }
        case .decimal, .uuid, .timestamp, .date:
            var made: [UInt8] = []
            // Reuses the memory for the next value.
            swap(&made, &text)
            made.removeAll(keepingCapacity: true)
            try Self.appendText(rows, row, column, as: type, to: &made)
            writer.write(text: made.span, as: type)
            text = made
        }
    }

    /// Appends the canonical form of a value that Postgres stores in binary.
    private static func appendText(
        _ rows: borrowing PostgresResult, _ row: Int, _ column: Int, as type: SyncModel.ColumnType,
        to text: inout [UInt8]
    ) throws {
        switch type {
        case .uuid:
            try rows.withBytes(row, column) { binary throws(PostgresError) in
                try PostgresUUID.appendText(of: binary, to: &text)
            }
        case .timestamp:
            let time = PostgresEpoch.since1970(try rows.bigint(row, column))
            guard let time, validTimes.contains(time) else {
                throw RecordStoreError.corrupt("a row has a timestamp out of range")
            }
            CanonicalTimestamp.append(time, to: &text)
        case .date:
            let days = Int64(try rows.integer(row, column)) + PostgresEpoch.days
            guard validTimes.contains(days * 86_400_000_000) else {
                throw RecordStoreError.corrupt("a row has a date out of range")
            }
            CalendarDate(daysSince1970: Int(days)).append(to: &text)
        default:
            try rows.withBytes(row, column) { binary throws(PostgresError) in
                try PostgresNumeric.appendText(of: binary, to: &text)
            }
        }
    }

    /// Microseconds since 1970 of the years 0001 to 9999.
    private static let validTimes = Int64(-62_135_596_800_000_000)..<Int64(253_402_300_800_000_000)
}
