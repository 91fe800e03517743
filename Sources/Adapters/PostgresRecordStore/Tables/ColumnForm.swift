import Postgres
import SyncModel

extension SyncModel.ColumnType {
    /// The type of Postgres that keeps the values.
    ///
    /// `json` rather than `jsonb`: it keeps the text, and with it the order of keys and the spelling of numbers (I4).
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

    /// The type as Postgres itself spells it (`format_type`).
    var postgresName: String {
        if case .decimal(let precision, let scale) = self { return "numeric(\(precision),\(scale))" }
        return postgresType.name
    }
}

/// Postgres counts moments and days from 2000-01-01 in UTC.
enum PostgresEpoch {
    /// Microseconds from 1970 to 2000.
    static let microseconds: Int64 = 946_684_800_000_000
    /// Days from 1970 to 2000.
    static let days: Int64 = 10_957

    /// A moment as Postgres counts it; `nil` where it lies before all that Postgres counts.
    ///
    /// The least moment, which no clock shows, is Postgres's `-infinity`.
    static func moment(since1970 microseconds: Int64) -> Int64? {
        if microseconds == .min { return .min }
        let (moment, isOutside) = microseconds.subtractingReportingOverflow(Self.microseconds)
        return isOutside || moment == .min ? nil : moment
    }

    /// Microseconds since 1970; `nil` where they are too many.
    static func microsecondsSince1970(_ moment: Int64) -> Int64? {
        if moment == .min { return .min }
        let (microseconds, isOutside) = moment.addingReportingOverflow(Self.microseconds)
        return isOutside ? nil : microseconds
    }
}
