import CPostgres

/// An error of Postgres or of the way to it.
///
/// It keeps what names the place and drops what may quote values of rows: Postgres's details, hints and contexts.
package struct PostgresError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Postgres's code; `nil` where the error is the client library's own, as when a connection breaks.
    package let sqlState: SQLState?
    /// The primary message; it may quote a value where the class is that of bad data (22).
    package let message: String
    /// The table that the error is about, where Postgres says so.
    package let table: String?
    /// The column.
    package let column: String?
    /// The constraint or index.
    package let constraint: String?
    /// Which statement of a pipeline failed, from 0.
    package let statement: Int?
    /// Whether the session is gone: what was sent last may have been done or not.
    package let isConnectionLost: Bool

    /// States an error.
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

    /// Whether the same call may succeed later: the session was lost, or what stood in the way may pass.
    package var isRetriable: Bool {
        guard let sqlState else { return isConnectionLost }
        switch sqlState {
        case .lockNotAvailable, .queryCanceled, .readOnlyTransaction: return true
        default: break
        }
        switch sqlState.category {
        // Connection, roll-backs by deadlock and the like, resources (disk, memory, connections), operators, system.
        case "08", "40", "53", "57", "58": return true
        // The server refuses the session: who asks, which database, what it may do.
        case "22", "28", "3D", "42": return false
        default: return isConnectionLost
        }
    }

    /// The code, the message and the place.
    package var description: String {
        var text = message
        if let sqlState { text += " (SQLSTATE \(sqlState))" }
        return text
    }

    /// The code and the place without Postgres's own words, which may quote a value.
    package var withoutMessage: String {
        var parts: [String] = []
        if let sqlState { parts.append("SQLSTATE \(sqlState)") }
        if let column { parts.append("column \(column)") }
        if let constraint { parts.append("constraint \(constraint)") }
        return parts.isEmpty ? "no code" : parts.joined(separator: ", ")
    }
}

extension PostgresError {
    /// Reads the error out of a result.
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
            // The server ends the session with such an error. Errors without a code are the client library's own.
            isConnectionLost: severity == "FATAL" || severity == "PANIC" || sqlState == nil)
    }

    /// The failure of an attempt to connect, whose text has the code in it: `FATAL:  57P03: …`.
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

    /// A text of the client library as one line.
    static func line(_ text: UnsafePointer<CChar>?) -> String {
        guard let text else { return "out of memory" }
        let lines = String(cString: text).split(whereSeparator: \.isNewline).map { line in
            line.drop { $0 == "\t" || $0 == " " }
        }
        return lines.joined(separator: " ")
    }
}
