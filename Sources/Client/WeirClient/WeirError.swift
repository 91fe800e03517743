/// Why a call of ``Weir`` failed.
public enum WeirError: Error, Equatable, Sendable {
    /// A table cannot be synced as it is; the reason says what to change.
    case unsupportedTable(name: String, reason: String)
    /// A newer version of WeirClient has opened the file before. Update the app.
    case newerFormat(found: Int64, supported: Int64)
    /// SQLite returned an error, with its extended result code.
    case database(code: Int32, message: String, sql: String?)
    /// ``Weir/close()`` was called before.
    case closed
}

extension WeirError: CustomStringConvertible {
    /// The error in a sentence.
    public var description: String {
        switch self {
        case .unsupportedTable(let name, let reason): "the table \(name) cannot be synced: \(reason)"
        case .newerFormat(let found, let supported):
            "the file has Weir's tables in format \(found); this version reads formats up to \(supported): update the app"
        case .database(let code, let message, let sql):
            "SQLite returned \(code): \(message)" + (sql.map { " (\($0))" } ?? "")
        case .closed: "this Weir was closed"
        }
    }
}
