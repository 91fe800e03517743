import CWeirSQLite

/// An error of SQLite with its code, cause and place.
package struct SQLiteError: Error, CustomStringConvertible {
    /// What the connection was doing.
    package enum Action: String, Sendable {
        case open, prepare, bind, step, read, transaction, checkpoint, close
    }

    package let code: ResultCode
    /// Its lower eight bits are the primary code.
    package let extendedCode: Int32
    /// After a failed open it says what to do.
    package internal(set) var message: String
    package internal(set) var action: Action
    /// The statement, if there was one.
    package let sql: String?
    package let path: String
    /// The `errno` behind an input/output error or a failed open, otherwise 0.
    package let systemError: Int32

    /// Another connection holds the database, or another statement the table; a retry may succeed.
    package var isBusy: Bool { code == .busy || code == .locked }
    /// The disk or `max_page_count` is full.
    package var isFull: Bool { code == .full }
    package var isReadOnly: Bool { code == .readOnly }
    /// The file is damaged or no database at all.
    package var isCorrupt: Bool { code == .corrupt || code == .notADatabase }
    package var isInputOutput: Bool { code == .inputOutput }
    /// A constraint of the schema rejected the row.
    package var isConstraint: Bool { code == .constraint }

    /// Without column values, on one line.
    package var description: String {
        var text = "\(code) (\(extendedCode)) in \(action.rawValue) of \(path): \(message)"
        if systemError != 0 { text += " [errno \(systemError)]" }
        if let sql { text += " [\(sql)]" }
        return text
    }
}

/// A primary result code of SQLite, such as `SQLITE_BUSY`.
package struct ResultCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    package let rawValue: Int32

    /// The upper bits of an extended code are cut off.
    package init(rawValue: Int32) {
        self.rawValue = rawValue & 0xFF
    }

    /// Another connection holds the database.
    package static let busy = ResultCode(rawValue: SQLITE_BUSY)
    /// Another statement of the same connection holds the table.
    package static let locked = ResultCode(rawValue: SQLITE_LOCKED)
    package static let full = ResultCode(rawValue: SQLITE_FULL)
    package static let readOnly = ResultCode(rawValue: SQLITE_READONLY)
    package static let corrupt = ResultCode(rawValue: SQLITE_CORRUPT)
    package static let notADatabase = ResultCode(rawValue: SQLITE_NOTADB)
    package static let inputOutput = ResultCode(rawValue: SQLITE_IOERR)
    package static let constraint = ResultCode(rawValue: SQLITE_CONSTRAINT)
    package static let cannotOpen = ResultCode(rawValue: SQLITE_CANTOPEN)
    package static let outOfMemory = ResultCode(rawValue: SQLITE_NOMEM)
    /// A value or statement exceeds a limit of SQLite.
    package static let tooBig = ResultCode(rawValue: SQLITE_TOOBIG)
    /// A column holds a value of another type than requested.
    package static let mismatch = ResultCode(rawValue: SQLITE_MISMATCH)
    package static let misuse = ResultCode(rawValue: SQLITE_MISUSE)
    /// A parameter's index is out of range.
    package static let range = ResultCode(rawValue: SQLITE_RANGE)
    /// Invalid SQL, or any other error without a code of its own.
    package static let error = ResultCode(rawValue: SQLITE_ERROR)
    package static let abort = ResultCode(rawValue: SQLITE_ABORT)

    /// The name SQLite's documentation uses.
    package var description: String {
        switch rawValue {
        case SQLITE_OK: "SQLITE_OK"
        case SQLITE_ERROR: "SQLITE_ERROR"
        case SQLITE_INTERNAL: "SQLITE_INTERNAL"
        case SQLITE_PERM: "SQLITE_PERM"
        case SQLITE_ABORT: "SQLITE_ABORT"
        case SQLITE_BUSY: "SQLITE_BUSY"
        case SQLITE_LOCKED: "SQLITE_LOCKED"
        case SQLITE_NOMEM: "SQLITE_NOMEM"
        case SQLITE_READONLY: "SQLITE_READONLY"
        case SQLITE_INTERRUPT: "SQLITE_INTERRUPT"
        case SQLITE_IOERR: "SQLITE_IOERR"
        case SQLITE_CORRUPT: "SQLITE_CORRUPT"
        case SQLITE_NOTFOUND: "SQLITE_NOTFOUND"
        case SQLITE_FULL: "SQLITE_FULL"
        case SQLITE_CANTOPEN: "SQLITE_CANTOPEN"
        case SQLITE_PROTOCOL: "SQLITE_PROTOCOL"
        case SQLITE_SCHEMA: "SQLITE_SCHEMA"
        case SQLITE_TOOBIG: "SQLITE_TOOBIG"
        case SQLITE_CONSTRAINT: "SQLITE_CONSTRAINT"
        case SQLITE_MISMATCH: "SQLITE_MISMATCH"
        case SQLITE_MISUSE: "SQLITE_MISUSE"
        case SQLITE_NOLFS: "SQLITE_NOLFS"
        case SQLITE_AUTH: "SQLITE_AUTH"
        case SQLITE_RANGE: "SQLITE_RANGE"
        case SQLITE_NOTADB: "SQLITE_NOTADB"
        default: "SQLite code \(rawValue)"
        }
    }
}
