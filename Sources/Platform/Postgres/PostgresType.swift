/// A type of Postgres that values are sent as, by the number that every server knows it by (pg_type.h).
package enum PostgresType: UInt32, Sendable, Hashable {
    /// `boolean`.
    case boolean = 16
    /// `bytea`.
    case bytea = 17
    /// `bigint`.
    case bigint = 20
    /// `integer`.
    case integer = 23
    /// `text`.
    case text = 25
    /// `json`, kept as it was written.
    case json = 114
    /// `double precision`.
    case double = 701
    /// `date`.
    case date = 1082
    /// `timestamp with time zone`.
    case timestamptz = 1184
    /// `numeric`.
    case numeric = 1700
    /// `uuid`.
    case uuid = 2950

    /// The name in SQL.
    package var name: String {
        switch self {
        case .boolean: "boolean"
        case .bytea: "bytea"
        case .bigint: "bigint"
        case .integer: "integer"
        case .text: "text"
        case .json: "json"
        case .double: "double precision"
        case .date: "date"
        case .timestamptz: "timestamp with time zone"
        case .numeric: "numeric"
        case .uuid: "uuid"
        }
    }
}
