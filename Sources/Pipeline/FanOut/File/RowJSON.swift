import JSONText
import SyncModel

/// Renders rows of one schema version as in the client contract, when they are written, so that a pull only copies
/// bytes.
///
/// The constant parts of each table's rows are rendered in advance.
struct RowJSON {
    private struct TableParts {
        /// The start of a row: `{"table":"person","id":`.
        let start: [UInt8]
        /// The columns' names as JSON, each with its colon.
        let columns: [[UInt8]]
        let hasUpdatedAt: Bool
    }

    private let tables: [TableParts]

    init(_ schema: Schema) {
        tables = schema.tables.map { table in
            var start = Array(#"{"table":"#.utf8)
            start.appendString(table.name)
            start.append(contentsOf: #","id":"#.utf8)
            let columns = table.columns.map { column in
                var part: [UInt8] = []
                part.appendString(column.name)
                part.append(UInt8(ascii: ":"))
                return part
            }
            return TableParts(start: start, columns: columns, hasUpdatedAt: table.policy == .lastWriteWins)
        }
    }

    /// The values come last, so that a reader that knows how many there are can copy them unread.
    ///
    /// - Returns: how many columns the row has; those added to its table later are not among them.
    /// - Throws: ``LogFault/invalidRecord(_:)`` for a table or column that the version does not have.
    @discardableResult
    func append(_ row: OrderedRow, to json: inout [UInt8]) throws(LogFault) -> Int {
        guard tables.indices.contains(row.key.table) else {
            throw .invalidRecord("a row names table \(row.key.table) of \(tables.count)")
        }
        let table = tables[row.key.table]
        json.append(contentsOf: table.start)
        json.appendString(row.key.id.text)
        json.append(contentsOf: #","syncId":"#.utf8)
        json.appendString(row.key.owner.text)
        json.append(contentsOf: #","knowledgeId":"#.utf8)
        json.appendString(row.knowledgeID.text)
        json.append(contentsOf: #","timeStamp":"#.utf8)
        json.appendJSONNumber(row.timeStamp.rawValue)
        json.append(contentsOf: #","version":"#.utf8)
        json.appendJSONNumber(row.version)
        json.append(contentsOf: row.isDeleted ? #","deleted":true"#.utf8 : #","deleted":false"#.utf8)
        if table.hasUpdatedAt {
            json.append(contentsOf: #","updatedAt":""#.utf8)
            json.appendTime(row.updatedAt)
            json.append(UInt8(ascii: "\""))
        }
        json.append(contentsOf: #","writer":{"syncId":"#.utf8)
        json.appendString(row.writer.caller.text)
        json.append(contentsOf: #","knowledgeId":"#.utf8)
        json.appendString(row.writer.knowledgeID.text)
        json.append(contentsOf: #"},"values":{"#.utf8)
        let columns = try appendValues(row.values, table, to: &json)
        json.append(contentsOf: "}}".utf8)
        return columns
    }

    /// Appends the row's columns.
    ///
    /// A row written under an older version lacks later columns.
    private func appendValues(
        _ values: RowValues, _ table: TableParts, to json: inout [UInt8]
    ) throws(LogFault) -> Int {
        var count = 0
        try values.forEachColumn { (column, value) throws(LogFault) in
            guard column < table.columns.count, !value.isEmpty else {
                throw .invalidRecord("a row's column \(column) is absent, or not one of \(table.columns.count)")
            }
            if column > 0 { json.append(UInt8(ascii: ",")) }
            json.append(contentsOf: table.columns[column])
            json.append(contentsOf: value)
            count += 1
        }
        return count
    }
}

extension [UInt8] {
    fileprivate mutating func appendString(_ text: String) {
        var text = text
        text.withUTF8 { appendJSONString($0.span) }
    }

    /// Appends a time in its canonical form.
    ///
    /// Times outside the years 1 to 9999, which ingest rejects, are clamped.
    fileprivate mutating func appendTime(_ microseconds: Int64) {
        CanonicalTimestamp.append(Swift.min(Swift.max(microseconds, Self.minimumTime), Self.maximumTime), to: &self)
    }

    /// 0001-01-01T00:00:00.000000Z and 9999-12-31T23:59:59.999999Z.
    private static let minimumTime: Int64 = -62_135_596_800_000_000
    private static let maximumTime: Int64 = 253_402_300_799_999_999
}
