import CSQLite

/// An error of SQLite, with its code, its cause and its place.
package struct SQLiteError: Error, CustomStringConvertible {
    /// What was being done.
    package enum Action: String, Sendable {
        /// Opening the file and setting the connection up.
        case open
        /// Compiling SQL.
        case prepare
        /// Giving a parameter its value.
        case bind
        /// Running a statement.
        case step
        /// Reading a column of the current row.
        case read
        /// Starting, committing or rolling back a transaction.
        case transaction
        /// Moving the write-ahead log into the database.
        case checkpoint
        /// Looking for damage.
        case check
        /// Closing the connection.
        case close
    }

    /// The primary code.
    package let code: ResultCode
    /// The extended code, which holds the primary one in its lower eight bits.
    package let extendedCode: Int32
    /// The reason in words; after a failed open it says what to do.
    package let message: String
    /// What was being done.
    package let action: Action
    /// The statement, as far as there was one.
    package let sql: String?
    /// The file of the database.
    package let path: String
    /// The error of the system (`errno`) behind an input/output error or a failed open, otherwise 0.
    package let systemError: Int32

    /// Another connection holds the database, or another statement the table: later it may work.
    package var isBusy: Bool { code == .busy || code == .locked }
    /// No room: the disk or `max_page_count` is full.
    package var isFull: Bool { code == .full }
    /// A write to a database that is open, or may only be opened, for reading.
    package var isReadOnly: Bool { code == .readOnly }
    /// The file is damaged or no database at all.
    package var isCorrupt: Bool { code == .corrupt || code == .notADatabase }
    /// The system failed to read or write.
    package var isInputOutput: Bool { code == .inputOutput }
    /// The schema refused the row.
    package var isConstraint: Bool { code == .constraint }
    /// The row's key exists already: a UNIQUE index, the primary key or the rowid.
    package var isUniqueViolation: Bool {
        Int(extendedCode) == csqlite_constraint_unique
            || Int(extendedCode) == csqlite_constraint_primary_key
            || Int(extendedCode) == csqlite_constraint_rowid
    }
    /// A NULL in a column declared NOT NULL.
    package var isNotNullViolation: Bool { Int(extendedCode) == csqlite_constraint_not_null }
    /// A CHECK of the schema failed.
    package var isCheckViolation: Bool { Int(extendedCode) == csqlite_constraint_check }

    /// Everything but the columns' values, in one line.
    package var description: String {
        var text = "\(code) (\(extendedCode)) in \(action.rawValue) of \(path): \(message)"
        if systemError != 0 { text += " [errno \(systemError)]" }
        if let sql { text += " [\(sql)]" }
        return text
    }
}
