import CPostgres

/// An error of Postgres or of the connection.
///
/// It keeps the names of objects, and drops details, hints and contexts, which may quote values of rows.
package struct PostgresError: Error, Sendable, Hashable, CustomStringConvertible {
    /// `nil` for an error of libpq, such as a lost connection.
    package let sqlState: SQLState?
    /// The primary message; it may quote a value in an error of bad data (class 22).
    package let message: String
    package let table: String?
    package let column: String?
    /// The constraint or index.
    package let constraint: String?
    /// The number of the failed statement in its pipeline, from 0.
    package internal(set) var statement: Int?
    /// The session has ended: the last statements may have been executed or not.
    package let isConnectionLost: Bool

    package init(
        sqlState: SQLState? = nil, message: String, table: String? = nil, column: String? = nil,
        constraint: String? = nil, statement: Int? = nil, isConnectionLost: Bool = false
    ) {
        self.sqlState = sqlState
        self.message = message
        self.table = table
        self.column = column
        self.constraint = constraint
        self.statement = statement
        self.isConnectionLost = isConnectionLost
    }

    /// Whether the same call may succeed later: the session was lost, or the cause is transient.
    package var isRetriable: Bool {
        guard let sqlState else { return isConnectionLost }
        switch sqlState {
        case .lockNotAvailable, .queryCanceled, .readOnlyTransaction: return true
        default: break
        }
        switch sqlState.category {
        // Connection, deadlocks and serialization, resources (disk, memory, connections), operator intervention, system.
        case "08", "40", "53", "57", "58": return true
        // The server rejects the session: authentication, database, privileges.
        case "22", "28", "3D", "42": return false
        default: return isConnectionLost
        }
    }

    package var description: String {
        var text = message
        if let sqlState { text += " (SQLSTATE \(sqlState))" }
        return text
    }

    /// Without the message, which may quote a value.
    package var withoutMessage: String {
        var parts: [String] = []
        if let sqlState { parts.append("SQLSTATE \(sqlState)") }
        if let column { parts.append("column \(column)") }
        if let constraint { parts.append("constraint \(constraint)") }
        return parts.isEmpty ? "no code" : parts.joined(separator: ", ")
    }
}

extension PostgresError {
    init(_ result: OpaquePointer, statement: Int? = nil) {
        func field(_ code: Int) -> String? {
            PQresultErrorField(result, Int32(code)).map { String(cString: $0) }
        }
        let severity = field(cpostgres_diag_severity)
        let sqlState = field(cpostgres_diag_sqlstate).map(SQLState.init)
        let primary = field(cpostgres_diag_message_primary)
        self.init(
            sqlState: sqlState, message: primary ?? Self.line(PQresultErrorMessage(result)),
            table: field(cpostgres_diag_table_name),
            column: field(cpostgres_diag_column_name),
            constraint: field(cpostgres_diag_constraint_name), statement: statement,
            // The server ends the session with a FATAL error. Errors without SQLSTATE are libpq's own.
            isConnectionLost: severity == "FATAL" || severity == "PANIC" || sqlState == nil)
    }

    /// The error of a connection attempt, whose text contains the SQLSTATE: `FATAL:  57P03: …`.
    init(connecting text: UnsafePointer<CChar>?) {
        let line = Self.line(text)
        var code: SQLState?
        func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
        func isCapital(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte) }
        for word in line.split(separator: ":", omittingEmptySubsequences: false) {
            let word = word.drop { $0 == " " }
            let bytes = word.utf8
            if bytes.count == 5, bytes.allSatisfy({ isDigit($0) || isCapital($0) }), bytes.contains(where: isDigit) {
                code = SQLState(String(word))
                break
            }
        }
        self.init(sqlState: code, message: line, isConnectionLost: true)
    }

    /// A message of libpq as one line.
    static func line(_ text: UnsafePointer<CChar>?) -> String {
        guard let text else { return "out of memory" }
        let lines = String(cString: text).split(whereSeparator: \.isNewline).map { line in
            line.drop { $0 == "\t" || $0 == " " }
        }
        return lines.joined(separator: " ")
    }
}
