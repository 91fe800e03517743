import JSONText
import SyncModel

/// Renders rows of one schema version as the client contract shows them, once, so that a pull only copies bytes.
///
/// The parts that every row of a table has in common are made when the renderer is.
struct RowJSON {
    private struct TableParts {
        /// What comes before the id: `{"table":"person","id":`.
        let start: [UInt8]
        /// The spelled names of the columns, each with its colon.
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

    /// Appends the row's object.
    ///
    /// - Throws: ``LogFault/invalidRecord(_:)`` for a table or column that the version does not have.
    func append(_ row: OrderedRow, to json: inout [UInt8]) throws(LogFault) {
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
        json.appendNumber(row.timeStamp.rawValue)
        json.append(contentsOf: #","version":"#.utf8)
        json.appendNumber(row.version)
        json.append(contentsOf: row.isDeleted ? #","deleted":true"#.utf8 : #","deleted":false"#.utf8)
        if table.hasUpdatedAt {
            json.append(contentsOf: #","updatedAt":""#.utf8)
            json.appendMoment(row.updatedAt)
            json.append(UInt8(ascii: "\""))
        }
        json.append(contentsOf: #","values":{"#.utf8)
        try appendValues(row.values, table, to: &json)
        json.append(contentsOf: #"},"writer":{"syncId":"#.utf8)
        json.appendString(row.writer.caller.text)
        json.append(contentsOf: #","knowledgeId":"#.utf8)
        json.appendString(row.writer.knowledgeID.text)
        json.append(contentsOf: "}}".utf8)
    }

    /// Appends the columns that the row holds: one written under an older version lacks those that came later.
    private func appendValues(_ values: RowValues, _ table: TableParts, to json: inout [UInt8]) throws(LogFault) {
        try values.forEachColumn { (column, value) throws(LogFault) in
            guard column < table.columns.count, !value.isEmpty else {
                throw .invalidRecord("a row's column \(column) is absent, or not one of \(table.columns.count)")
            }
            if column > 0 { json.append(UInt8(ascii: ",")) }
            json.append(contentsOf: table.columns[column])
            json.append(contentsOf: value)
        }
    }
}

extension [UInt8] {
    /// Appends text as a JSON string.
    fileprivate mutating func appendString(_ text: String) {
        var text = text
        text.withUTF8 { appendJSONString($0.span) }
    }

    /// Appends a number that is not negative, in decimal.
    fileprivate mutating func appendNumber(_ number: Int64) {
        appendDigits(UInt64(number.magnitude), atLeast: 1)
    }

    /// Appends a moment in its canonical form: UTC, six decimals.
    ///
    /// Ingest admits the years 1 to 9999, which four digits hold; what lies outside is shown as the nearest of them.
    mutating func appendMoment(_ microseconds: Int64) {
        let moment = Swift.min(Swift.max(microseconds, Self.firstMoment), Self.lastMoment)
        let (days, microsecondOfDay) = moment.flooredDivision(by: 86_400_000_000)
        let date = civilDate(daysSince1970: days)
        let (second, fraction) = microsecondOfDay.quotientAndRemainder(dividingBy: 1_000_000)
        appendDigits(UInt64(date.year), atLeast: 4)
        append(UInt8(ascii: "-"))
        appendDigits(UInt64(date.month), atLeast: 2)
        append(UInt8(ascii: "-"))
        appendDigits(UInt64(date.day), atLeast: 2)
        append(UInt8(ascii: "T"))
        appendDigits(UInt64(second / 3600), atLeast: 2)
        append(UInt8(ascii: ":"))
        appendDigits(UInt64(second / 60 % 60), atLeast: 2)
        append(UInt8(ascii: ":"))
        appendDigits(UInt64(second % 60), atLeast: 2)
        append(UInt8(ascii: "."))
        appendDigits(UInt64(fraction), atLeast: 6)
        append(UInt8(ascii: "Z"))
    }

    /// 0001-01-01T00:00:00.000000Z and 9999-12-31T23:59:59.999999Z.
    private static let firstMoment: Int64 = -62_135_596_800_000_000
    private static let lastMoment: Int64 = 253_402_300_799_999_999

    private mutating func appendDigits(_ number: UInt64, atLeast width: Int) {
        // 20 digits hold every number; those from `start` on are written before they are read.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var rest = number
            var start = 20
            repeat {
                start -= 1
                digits[start] = UInt8(ascii: "0") + UInt8(rest % 10)
                rest /= 10
            } while rest > 0 || 20 - start < width
            append(contentsOf: digits[start...])
        }
    }
}

extension Int64 {
    fileprivate func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}

/// The date in the Gregorian calendar, which is extended to before its introduction.
///
/// Counts from 1 March of year 0, so that the leap day is a year's last, in cycles of 400 years, which have 146,097 days.
private func civilDate(daysSince1970: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let (cycle, dayOfCycle) = (daysSince1970 + 719_468).flooredDivision(by: 146_097)
    let yearOfCycle = (dayOfCycle - dayOfCycle / 1_460 + dayOfCycle / 36_524 - dayOfCycle / 146_096) / 365
    let dayOfYear = dayOfCycle - (365 * yearOfCycle + yearOfCycle / 4 - yearOfCycle / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    return (cycle * 400 + yearOfCycle + (month <= 2 ? 1 : 0), month, day)
}
