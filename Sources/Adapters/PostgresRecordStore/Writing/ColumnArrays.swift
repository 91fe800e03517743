import CanonicalValues
import Postgres
import RelationalTables
import SyncModel

/// The columns of a table as arrays, Weir's before those of the schema.
struct ColumnArrays {
    private(set) var arrays: [BinaryArray]

    init(_ types: [PostgresType]) {
        arrays = types.map { BinaryArray($0) }
    }

    /// Keeps the memory.
    mutating func removeAll() {
        for index in arrays.indices { arrays[index].removeAll() }
    }

    /// Appends the columns of ``RowColumns``, in their order.
    mutating func append(_ row: OrderedRow) throws(CanonicalValueError) {
        guard let createdAt = PostgresEpoch.since2000(row.createdAt),
            let updatedAt = PostgresEpoch.since2000(row.updatedAt)
        else { throw CanonicalValueError(type: "timestamp") }
        arrays[0].append(row.key.owner.text)
        arrays[1].append(row.key.id.text)
        arrays[2].append(row.knowledgeID.text)
        arrays[3].append(row.timeStamp.rawValue)
        arrays[4].append(row.version)
        arrays[5].append(row.isDeleted)
        arrays[6].append(createdAt)
        arrays[7].append(updatedAt)
        arrays[8].append(row.writer.caller.text)
        arrays[9].append(row.writer.knowledgeID.text)
        if let batch = row.writerBatch { arrays[10].append(batch) } else { arrays[10].appendNull() }
        arrays[11].append(row.isExact)
        arrays[12].append(row.othersTimeStamp.rawValue)
    }

    /// Appends a value of a schema column.
    ///
    /// - Throws: `CanonicalValueError` if Postgres would return it in another form.
    mutating func append(
        _ value: borrowing ColumnValue, column: Int, as type: SyncModel.ColumnType
    ) throws(CanonicalValueError) {
        let index = RowColumns.all.count + column
        switch value {
        case .null: arrays[index].appendNull()
        case .integer(let integer):
            if type == .boolean { arrays[index].append(integer != 0) } else { arrays[index].append(integer) }
        case .real(let real): arrays[index].append(real)
        case .bytes(let bytes): arrays[index].append(bytes: bytes)
        case .text(let text):
            switch type {
            case .text, .json: arrays[index].append(bytes: text)
            default: try append(text, to: index, as: type)
            }
        }
    }

    /// Appends a value that Postgres stores in binary; its text must be exactly what a read will return (I4).
    private mutating func append(
        _ text: Span<UInt8>, to index: Int, as type: SyncModel.ColumnType
    ) throws(CanonicalValueError) {
        let isCanonical: Bool
        switch type {
        case .timestamp:
            let time = CanonicalTimestamp(text)
            isCanonical = time?.isCanonical ?? false
            if let time { arrays[index].append(time.microseconds - PostgresEpoch.microseconds) }
        case .date:
            let date = CalendarDate(text)
            isCanonical = date != nil
            if let date { arrays[index].append(Int32(Int64(date.daysSince1970) - PostgresEpoch.days)) }
        case .uuid: isCanonical = arrays[index].append(uuid: text)
        case .decimal(_, let scale):
            isCanonical = CanonicalDecimal.holds(text, scale: scale) && arrays[index].append(numeric: text)
        default:
            isCanonical = false
        }
        guard isCanonical else { throw CanonicalValueError(type: type.name) }
    }
}

private enum CanonicalDecimal {
    /// Whether a text has `scale` digits behind the point, no leading zeros, and no sign if it is zero.
    static func holds(_ text: Span<UInt8>, scale: Int) -> Bool {
        let end = text.count - (scale == 0 ? 0 : scale + 1)
        let isNegative = !text.isEmpty && text[0] == UInt8(ascii: "-")
        let start = isNegative ? 1 : 0
        guard end > start, scale == 0 || text[end] == UInt8(ascii: ".") else { return false }
        if end - start > 1, text[start] == UInt8(ascii: "0") { return false }
        guard isNegative else { return true }
        for index in text.indices where text[index] >= UInt8(ascii: "1") && text[index] <= UInt8(ascii: "9") {
            return true
        }
        return false
    }
}
