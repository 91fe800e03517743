/// A change that the server has not stored, kept for the user.
///
/// The row has the server's values, and what the app had written is in ``change``. A row that the server does not have stays in the table
/// for the user to correct: its next change is sent as a creation.
public struct KeptEdit: Equatable, Sendable {
    /// Names it; greater than those of earlier ones.
    public let number: Int64
    /// The app's table.
    public let table: String
    /// The row's key.
    public let key: SQLValue
    /// `conflict`, `revoked`, or the server's code of the refusal.
    public let code: String
    /// The server's, for developers.
    public let message: String
    /// The change as it was sent: JSON with `values`.
    public let change: String
    /// When it was kept, in RFC 3339.
    public let at: String
}

/// A row of the server that is not in the app's table, since the table cannot have it as it is.
public struct ParkedRow: Equatable, Sendable {
    /// The server's table.
    public let table: String
    /// The row's id.
    public let id: String
    /// Why it cannot be written: a table that the app does not have, a unique value that another row has.
    public let reason: String
    /// The row as it came: JSON with `values`.
    public let row: String
}

extension Weir {
    /// The changes that the server has not stored, oldest first.
    public func keptEdits() throws -> [KeptEdit] {
        try openFile.database.map("SELECT number, name, id, code, message, change, at FROM weir_aside ORDER BY number")
        {
            KeptEdit(
                number: $0.integer(at: 0), table: $0.string(at: 1), key: $0.value(at: 2), code: $0.string(at: 3),
                message: $0.string(at: 4), change: String(decoding: $0.bytes(at: 5), as: UTF8.self),
                at: $0.string(at: 6))
        }
    }

    /// Removes changes that were kept, after the user has seen them.
    ///
    /// - Parameter number: the last one's.
    public func removeKeptEdits(through number: Int64) throws {
        try openFile.database.run("DELETE FROM weir_aside WHERE number <= ?1", [.integer(number)])
        try showKept()
    }

    /// Rows that came and cannot be written; each answer of the server tries it again.
    public func parkedRows() throws -> [ParkedRow] {
        try openFile.database.map("SELECT name, id, reason, row FROM weir_parked ORDER BY sync_id, time_stamp") {
            ParkedRow(
                table: $0.string(at: 0), id: $0.string(at: 1), reason: $0.string(at: 2),
                row: String(decoding: $0.bytes(at: 3), as: UTF8.self))
        }
    }

    /// Counts what was kept and what waits, for the status.
    func showKept() throws {
        let database = try openFile.database
        let kept = Int(try database.integer("SELECT count(*) FROM weir_aside") ?? 0)
        let parked = Int(try database.integer("SELECT count(*) FROM weir_parked") ?? 0)
        statuses.update { status in
            var attention = status.needsAttention.filter { !$0.isKept }
            if kept > 0 { attention.insert(.keptEdits(kept)) }
            if parked > 0 { attention.insert(.parkedRows(parked)) }
            status.needsAttention = attention
        }
    }
}
