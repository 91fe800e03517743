/// A Postgres type by its OID, which is the same on every server (pg_type.h).
package enum PostgresType: UInt32, Sendable, Hashable {
    case boolean = 16
    case bytea = 17
    case bigint = 20
    case integer = 23
    case text = 25
    case json = 114
    case double = 701
    case date = 1082
    case timestamptz = 1184
    case numeric = 1700
    case uuid = 2950

    /// In SQL.
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
