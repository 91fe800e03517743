/// The outcomes of edits that the app wants to know, in `weir_outcome`.
///
/// One is tracked for the edit that is pending at that moment, however often the app asks for it. It goes with the edit into a batch, back
/// if the batch's outcome is not known, and is complete with the batch's outcome.
struct TrackedOutcomes {
    let database: Database

    /// How many complete ones are kept, the newest.
    static let mostCompleted = 10_000

    /// Whether any is not complete.
    var areOpen: Bool {
        get throws { try database.value("SELECT 1 FROM weir_outcome WHERE place IS NULL LIMIT 1") != nil }
    }

    /// Tracks the newest edit of a row, or what waits of it for columns of the server, as part of the open transaction.
    ///
    /// - Returns: its number; `nil` if the row has neither.
    func track(_ table: CapturedTable, _ key: SQLValue) throws -> Int64? {
        let isPending = try database.value(
            "SELECT 1 FROM \(table.edit) WHERE id = ?1 UNION ALL SELECT 1 FROM \(table.log) WHERE id = ?1 LIMIT 1",
            [key])
        var isSent = false
        if isPending == nil {
            isSent = try database.value("SELECT 1 FROM \(table.sent) WHERE id = ?1", [key]) != nil
            if !isSent, try HeldColumns(database: database, table: table).values(of: key).isEmpty { return nil }
        }
        return try track(table.number, key, isSent: isSent)
    }

    /// Tracks the newest edit of a row that has one.
    func track(_ table: Int, _ key: SQLValue, isSent: Bool = false) throws -> Int64 {
        let row: [SQLValue] = [.integer(Int64(table)), key, .integer(isSent ? 1 : 0)]
        if let known = try database.integer(
            "SELECT number FROM weir_outcome WHERE tbl = ?1 AND id IS ?2 AND sent = ?3 AND place IS NULL", row)
        {
            return known
        }
        let number = try database.takeNumbers(of: "last_outcome")
        try database.run(
            "INSERT INTO weir_outcome (tbl, id, sent, number) VALUES (?1, ?2, ?3, ?4)", row + [.integer(number)])
        return number
    }

    /// The row's edit goes into the batch.
    func send(_ table: Int, _ key: SQLValue) throws { try setSent(true, table, key) }

    /// The edits of a table that were sent, or one of them, are pending again.
    func thaw(_ table: Int, _ key: SQLValue?) throws { try setSent(false, table, key) }

    private func setSent(_ isSent: Bool, _ table: Int, _ key: SQLValue?) throws {
        let condition = key == nil ? "" : " AND id IS ?3"
        try database.run(
            "UPDATE weir_outcome SET sent = ?2 WHERE tbl = ?1 AND place IS NULL\(condition)",
            [.integer(Int64(table)), .integer(isSent ? 1 : 0)] + (key.map { [$0] } ?? []))
    }

    /// What became of an edit.
    struct Result {
        var status: RowOutcome.Status
        var code: String?
        var message: String?
        var timeStamp: Int64?
        /// The number of the change that was kept.
        var kept: Int64?
    }

    /// Completes that of the edit of a row that was sent, or else of the one that was not.
    func complete(_ table: Int, _ key: SQLValue, isSent: Bool, _ result: Result) throws {
        let numbers = try database.map(
            "SELECT number FROM weir_outcome WHERE tbl = ?1 AND id IS ?2 AND sent = ?3 AND place IS NULL",
            [.integer(Int64(table)), key, .integer(isSent ? 1 : 0)]
        ) { $0.value(at: 0) }
        for number in numbers {
            try database.run(
                """
                UPDATE weir_outcome SET place = ?2, status = ?3, code = ?4, message = ?5, time_stamp = ?6, kept = ?7,
                at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE number = ?1
                """,
                [
                    number, .integer(try database.takeNumbers(of: "last_place")), .text(result.status.rawValue),
                    result.code.map { .text($0) } ?? .null, result.message.map { .text($0) } ?? .null,
                    result.timeStamp.map { .integer($0) } ?? .null, result.kept.map { .integer($0) } ?? .null,
                ])
        }
    }

    /// Completes those of edits of a table that have ended without being sent, as they had changed nothing.
    func completeUnchanged(_ table: CapturedTable) throws {
        let ended = try database.map(
            """
            SELECT id FROM weir_outcome AS o WHERE tbl = \(table.number) AND place IS NULL AND NOT sent
            AND NOT EXISTS (SELECT 1 FROM \(table.edit) AS e WHERE e.id = o.id)
            AND id NOT IN (SELECT id FROM \(table.log) WHERE id IS NOT NULL)
            AND NOT EXISTS (SELECT 1 FROM weir_held AS h WHERE h.tbl = o.tbl AND h.id = o.id)
            """
        ) { $0.value(at: 0) }
        for key in ended { try complete(table.number, key, isSent: false, Result(status: .unchanged)) }
    }

    /// Removes the oldest complete ones.
    func prune() throws {
        try database.run(
            """
            DELETE FROM weir_outcome WHERE place <=
            (SELECT place FROM weir_outcome WHERE place IS NOT NULL ORDER BY place DESC LIMIT 1 OFFSET \(Self.mostCompleted))
            """)
    }
}

extension ClientFile {
    /// Completes the outcomes of edits that have changed nothing.
    ///
    /// - Returns: whether there may have been any.
    func completeUnchanged() throws -> Bool {
        let tracked = TrackedOutcomes(database: database)
        guard try tracked.areOpen else { return false }
        try database.transaction {
            for table in tables { try tracked.completeUnchanged(table) }
            try tracked.prune()
        }
        return true
    }
}
