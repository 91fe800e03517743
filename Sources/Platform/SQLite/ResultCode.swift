import CSQLite

/// A primary result code of SQLite, such as `SQLITE_BUSY`.
package struct ResultCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The number SQLite gives the code.
    package let rawValue: Int32

    /// Wraps a number; the upper bits of an extended code are cut off.
    package init(rawValue: Int32) {
        self.rawValue = rawValue & 0xFF
    }

    /// The database is held by another connection.
    package static let busy = ResultCode(rawValue: SQLITE_BUSY)
    /// A table is held by another statement of the same connection.
    package static let locked = ResultCode(rawValue: SQLITE_LOCKED)
    /// The disk, or the limit set by `max_page_count`, is full.
    package static let full = ResultCode(rawValue: SQLITE_FULL)
    /// The file or the connection is for reading only.
    package static let readOnly = ResultCode(rawValue: SQLITE_READONLY)
    /// The file is damaged.
    package static let corrupt = ResultCode(rawValue: SQLITE_CORRUPT)
    /// The file is no SQLite database.
    package static let notADatabase = ResultCode(rawValue: SQLITE_NOTADB)
    /// The system failed to read or write the file.
    package static let inputOutput = ResultCode(rawValue: SQLITE_IOERR)
    /// A constraint of the schema refused a row.
    package static let constraint = ResultCode(rawValue: SQLITE_CONSTRAINT)
    /// The file could not be opened.
    package static let cannotOpen = ResultCode(rawValue: SQLITE_CANTOPEN)
    /// Memory ran out.
    package static let outOfMemory = ResultCode(rawValue: SQLITE_NOMEM)
    /// A value or statement is above a limit of SQLite.
    package static let tooBig = ResultCode(rawValue: SQLITE_TOOBIG)
    /// A column holds a value of another type than the one asked for.
    package static let mismatch = ResultCode(rawValue: SQLITE_MISMATCH)
    /// The library was used against its rules.
    package static let misuse = ResultCode(rawValue: SQLITE_MISUSE)
    /// A parameter's index is out of range.
    package static let range = ResultCode(rawValue: SQLITE_RANGE)
    /// Invalid SQL, or any other error without a code of its own.
    package static let error = ResultCode(rawValue: SQLITE_ERROR)
    /// The statement or the transaction was rolled back.
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
