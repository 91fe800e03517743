import SQLite

/// Why a stream file cannot be used.
enum StreamFailure: Error, Sendable, CustomStringConvertible {
    /// There is no file, or one that was never finished.
    case missing(String)
    /// It does not hold what was written: it must be rebuilt.
    case damaged(String)
    /// The system refuses access; a retry may succeed.
    case unavailable(String)
    /// Something else wrote the file: it must be opened again.
    case foreignWriter(String)

    var description: String {
        switch self {
        case .missing(let what), .damaged(let what), .unavailable(let what), .foreignWriter(let what): what
        }
    }

    /// Whether the file must be rebuilt.
    var needsRebuild: Bool {
        switch self {
        case .missing, .damaged: true
        case .unavailable, .foreignWriter: false
        }
    }

    /// What an error of SQLite means for the file.
    ///
    /// Full, locked, unreadable or unwritable files may be intact. Any other error means damage, since tables and statements never
    /// change: a missing column, a value of another type, a key that exists already.
    init(_ error: SQLiteError) {
        if Self.damageCodes.contains(error.extendedCode) {
            self = .damaged(error.description)
            return
        }
        switch error.code {
        case .busy, .locked, .full, .readOnly, .inputOutput, .cannotOpen, .outOfMemory, .abort:
            self = .unavailable(error.description)
        default: self = .damaged(error.description)
        }
    }

    /// Extended codes of input and output that concern the file, not the system: SQLITE_IOERR_SHORT_READ (a file that ends
    /// too early), SQLITE_IOERR_DATA and SQLITE_IOERR_CORRUPTFS (checksums below SQLite).
    private static let damageCodes: Set<Int32> = [10 | 2 << 8, 10 | 32 << 8, 10 | 33 << 8]

    /// What an error of opening a finished file means for it.
    init(opening path: String, _ error: SQLiteError) {
        // A file that the system lets us read and write, and SQLite does not take, is damaged in its header.
        if error.code == .readOnly || error.code == .cannotOpen, error.systemError == 0, FileOnDisk.isWritable(path) {
            self = .damaged(error.description)
        } else {
            self.init(error)
        }
    }

    /// What an error of work on a file means for it; `nil` when it concerns something else.
    init?(cause error: any Error) {
        switch error {
        case let failure as StreamFailure: self = failure
        case let error as SQLiteError: self.init(error)
        // The connection is unusable, its transaction's content is not: opening the file again settles it.
        case let failure as RollbackFailure:
            self = .foreignWriter("a transaction could not be undone: \(failure.cause)")
        default: return nil
        }
    }
}
