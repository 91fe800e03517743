import Postgres
import RelationalTables
import SyncModel

extension SyncModel.ColumnType {
    /// `json` rather than `jsonb`, since it keeps the text, including the order of keys and the format of numbers (I4).
    var postgresType: PostgresType {
        switch self {
        case .text: .text
        case .integer: .bigint
        case .real: .double
        case .boolean: .boolean
        case .decimal: .numeric
        case .uuid: .uuid
        case .timestamp: .timestamptz
        case .date: .date
        case .bytes: .bytea
        case .json: .json
        }
    }

    /// The type as `format_type` of Postgres returns it.
    var postgresName: String {
        if case .decimal(let precision, let scale) = self { return "numeric(\(precision),\(scale))" }
        return postgresType.name
    }
}

extension TableDefinition.Column {
    init(_ column: RowColumn) {
        self.init(
            column.name, column.type.postgresName, isNullable: column.isNullable, comment: column.comment,
            maximumBytes: column.type == .text ? 255 : nil)
    }
}

extension SQLText {
    static func bytea(_ bytes: [UInt8]) -> String { "'\\x\(hexadecimal(bytes))'::bytea" }
}

/// Postgres counts times and days from 2000-01-01 in UTC.
enum PostgresEpoch {
    /// Microseconds from 1970 to 2000.
    static let microseconds: Int64 = 946_684_800_000_000
    /// Days from 1970 to 2000.
    static let days: Int64 = 10_957

    /// Microseconds since 2000; `nil` if Postgres cannot represent the time, whose `-infinity` is `Int64.min`.
    static func since2000(_ since1970: Int64) -> Int64? {
        if since1970 == .min { return .min }
        let (time, overflow) = since1970.subtractingReportingOverflow(microseconds)
        return overflow || time == .min ? nil : time
    }

    /// Microseconds since 1970; `nil` on overflow.
    static func since1970(_ since2000: Int64) -> Int64? {
        if since2000 == .min { return .min }
        let (time, overflow) = since2000.addingReportingOverflow(microseconds)
        return overflow ? nil : time
    }
}
