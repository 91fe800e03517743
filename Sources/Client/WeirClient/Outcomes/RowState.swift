/// What is known of a row at a moment: its row in the view `weir_<table>_state`, which any connection may read.
///
///     SELECT *, (SELECT state FROM weir_item_state AS s WHERE s.id = item.id) AS state FROM item WHERE list = ?1
///
/// The view has a row for each row of the table that the server or a captured change has, and so not for those that were there before Weir
/// until the file is attached; and one for those that are deleted and not sent, or cannot be written. Its columns are `id`,
/// `state`, `is_pending`, `is_sent`, `is_seen`, `kept`, `code`, `parked`, `time_stamp`, `is_deleted`, `owner`, `written_by`,
/// `written_by_owner` and `written_at`. Single rows are looked up quickly, as in this list; a LEFT JOIN or a sorted query of the view
/// makes all of it first, and a JOIN leaves rows out that were there before Weir. ``Weir/observe(_:_:)`` shows it again when it changes.
public struct RowState: Equatable, Sendable {
    /// How far the app's last change of a row has come.
    public enum Stage: String, Sendable {
        /// It is in this file, and not in a batch.
        case local
        /// It is in a batch whose outcome is not known.
        case sent
        /// The server has stored it, and what other devices have written by then may not be here yet.
        case ordered
        /// Everything up to this version of the row is here.
        case seen
    }

    /// `pending`, `sent`, `synced`, `conflict`, `refused` or `parked`.
    public enum State: String, Sendable {
        /// It has changes that are not sent.
        case pending
        /// Its changes are in a batch whose outcome is not known.
        case sent
        /// It is as the server has it.
        case synced
        /// A change was not stored, as another device has changed the row: ``Weir/keptEdits()``.
        case conflict
        /// A change was not stored: ``Weir/keptEdits()``.
        case refused
        /// A version of the server's cannot be written into the table: ``Weir/parkedRows()``.
        case parked
    }

    /// What has to be known first: a conflict before a refusal, and both before changes that are pending.
    public let state: State
    /// How far the last change has come.
    public let stage: Stage
    /// The number of the newest change that is kept: ``KeptEdit/number``.
    public let kept: Int64?
    /// The code of that change.
    public let code: String?
    /// The server's version that was received last; `nil` if the server has no such row.
    public let timeStamp: Int64?
    /// Whether the server's row is deleted.
    public let isDeleted: Bool
    /// The row's owner, if it is not the account.
    public let owner: String?
    /// The device that has written this version, where that is known.
    public let writtenBy: String?
    /// The account of that device.
    public let writtenByOwner: String?
    /// When it was written, by the server's log, in RFC 3339.
    public let writtenAt: String?
}

extension Weir {
    /// What is known of a row; `nil` if neither the server nor a captured change has it.
    ///
    /// - Parameters:
    ///   - table: one of those that were opened.
    ///   - key: the row's primary key.
    /// - Throws: `WeirError`.
    public func state(of table: String, _ key: SQLValue) throws -> RowState? {
        let view = StateView(of: try captured([table])[0]).name
        return try openFile.database.map(
            """
            SELECT state, is_pending, is_sent, is_seen, kept, code, time_stamp, is_deleted, owner, written_by, written_by_owner,
            written_at FROM \(quoted(view)) WHERE id = ?1
            """, [key]
        ) { row in
            func text(_ column: Int) -> String? { row.isNull(at: column) ? nil : row.string(at: column) }
            let stage: RowState.Stage =
                row.integer(at: 1) == 1
                ? .local : row.integer(at: 2) == 1 ? .sent : row.integer(at: 3) == 1 ? .seen : .ordered
            return RowState(
                state: RowState.State(rawValue: row.string(at: 0)) ?? .synced, stage: stage,
                kept: row.isNull(at: 4) ? nil : row.integer(at: 4), code: text(5),
                timeStamp: row.isNull(at: 6) ? nil : row.integer(at: 6), isDeleted: row.integer(at: 7) == 1,
                owner: text(8), writtenBy: text(9), writtenByOwner: text(10), writtenAt: text(11))
        }.first
    }
}
