import CWeirSQLite

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
    /// ``Weir/suspend()`` was called before, and not ``Weir/resume()``.
    case suspended
    /// ``Weir/attach(_:server:options:token:)`` was not called before.
    case notAttached
    /// A row cannot have the values of the server or of a decision, since a constraint of the app's table does not allow it.
    case taken(reason: String)
    /// A row's owner is no longer granted to the account, or the row is not the owner's any more.
    case notGranted(owner: String)
    /// The file is attached to another account, with this name.
    case otherAccount(attached: String)
    /// Rows have changes that the server does not have, and changes that it has not stored are kept: sync, or discard them.
    case unsent(rows: Int, keptEdits: Int)
    /// Another process syncs the file at the moment.
    case inUse
    /// The process has an SQLite that is too old.
    case outdatedSQLite(version: String, least: String)
}

extension WeirError {
    /// Whether it says that the file cannot be used at the moment: it is suspended, locked, or the disk is full; another statement would
    /// have failed as well.
    var isOfFile: Bool {
        switch self {
        case .suspended: true
        case .database(let code, _, _): Self.codesOfFile.contains(code & 0xFF)
        default: false
        }
    }

    /// Whether another connection has a lock: the same can be done later.
    var isLock: Bool {
        guard case .database(let code, _, _) = self else { return false }
        return Self.codesOfLock.contains(code & 0xFF)
    }

    /// Whether a constraint or a trigger of the app has refused a statement.
    var isConstraint: Bool { has(SQLITE_CONSTRAINT) }

    /// Whether a statement cannot be compiled, or an expression in it fails.
    var isOfStatement: Bool { has(SQLITE_ERROR) }

    /// Why a statement on a table of the app's fails for the values of a row: a constraint, a trigger, or an expression such as that of an
    /// index on JSON; `nil` for other errors.
    ///
    /// Of a statement that was compiled before: compiling fails for all values.
    var refusal: String? {
        guard case .database(let code, let message, _) = self, Self.codesOfRefusals.contains(code & 0xFF) else {
            return nil
        }
        return message
    }

    private func has(_ code: Int32) -> Bool {
        guard case .database(let found, _, _) = self else { return false }
        return found & 0xFF == code
    }

    /// Tables have other columns than when the file was opened, or it was opened again meanwhile: the next call finds it as it is.
    static let staleFile = WeirError.database(
        code: SQLITE_SCHEMA, message: "the file was changed since it was opened: call again", sql: nil)

    private static let codesOfRefusals = [SQLITE_CONSTRAINT, SQLITE_ERROR, SQLITE_TOOBIG, SQLITE_MISMATCH]
    private static let codesOfLock = [SQLITE_BUSY, SQLITE_LOCKED]
    private static let codesOfFile =
        codesOfLock + [
            SQLITE_NOMEM, SQLITE_READONLY, SQLITE_INTERRUPT, SQLITE_IOERR, SQLITE_FULL,
            SQLITE_CANTOPEN,
        ]
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
        case .suspended: "this Weir is suspended: call resume before"
        case .notAttached: "the file is not attached to an account: call attach before"
        case .taken(let reason): "the row cannot have these values: \(reason)"
        case .notGranted(let owner): "the row is not one of the owner \(owner) that the account may change"
        case .unsent(let rows, let kept):
            "\(rows) rows have changes that the server does not have, and \(kept) changes that it has not stored are kept: sync, or discard them"
        case .inUse: "another process syncs the file: try again"
        case .outdatedSQLite(let version, let least):
            "the process has SQLite \(version), and WeirClient needs \(least) or later"
        case .otherAccount(let account): "the file is attached to the account \(account): use a file for each account"
        }
    }
}
