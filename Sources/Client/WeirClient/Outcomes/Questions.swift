/// What becomes of rows that the app has asked about, in `weir_question`: one for each edit, of which the app may ask often.
///
/// A question is about the edit that is pending when it is asked. It goes with that edit into a batch, back if the batch's outcome is not
/// known, and has its answer with the outcome.
struct Questions {
    let database: Database

    /// How many answers are kept, the newest ones.
    static let mostAnswers = 10_000

    /// Whether any has no answer.
    var areOpen: Bool {
        get throws { try database.value("SELECT 1 FROM weir_question WHERE answer IS NULL LIMIT 1") != nil }
    }

    /// Asks about the newest edit of a row, as part of the open transaction.
    ///
    /// - Returns: the question's number; `nil` if the row has no edit.
    func ask(_ table: CapturedTable, _ key: SQLValue) throws -> Int64? {
        let isPending = try database.value(
            "SELECT 1 FROM \(table.edit) WHERE id = ?1 UNION ALL SELECT 1 FROM \(table.log) WHERE id = ?1 LIMIT 1",
            [key])
        var isSent = false
        if isPending == nil {
            isSent = try database.value("SELECT 1 FROM \(table.sent) WHERE id = ?1", [key]) != nil
            if !isSent { return nil }
        }
        return try ask(table.number, key, isSent: isSent)
    }

    /// Asks about the newest edit of a row that has one.
    func ask(_ table: Int, _ key: SQLValue, isSent: Bool = false) throws -> Int64 {
        let row: [SQLValue] = [.integer(Int64(table)), key, .integer(isSent ? 1 : 0)]
        if let known = try database.integer(
            "SELECT number FROM weir_question WHERE tbl = ?1 AND id IS ?2 AND sent = ?3 AND answer IS NULL", row)
        {
            return known
        }
        let number = try database.takeNumbers(of: "last_question")
        try database.run(
            "INSERT INTO weir_question (tbl, id, sent, number) VALUES (?1, ?2, ?3, ?4)", row + [.integer(number)])
        return number
    }

    /// The questions about a row's edit go into the batch with it.
    func send(_ table: Int, _ key: SQLValue) throws { try setSent(true, table, key) }

    /// The edits of a table that were sent, or one of them, are pending again.
    func thaw(_ table: Int, _ key: SQLValue?) throws { try setSent(false, table, key) }

    private func setSent(_ isSent: Bool, _ table: Int, _ key: SQLValue?) throws {
        let condition = key == nil ? "" : " AND id IS ?3"
        try database.run(
            "UPDATE weir_question SET sent = ?2 WHERE tbl = ?1 AND answer IS NULL\(condition)",
            [.integer(Int64(table)), .integer(isSent ? 1 : 0)] + (key.map { [$0] } ?? []))
    }

    /// What became of an edit.
    struct Answer {
        var status: RowOutcome.Status
        var code: String?
        var message: String?
        var timeStamp: Int64?
        /// The number of the change that was kept.
        var kept: Int64?
    }

    /// Answers the questions about the edit of a row that was sent, or else the one that was not.
    func answer(_ table: Int, _ key: SQLValue, isSent: Bool, _ answer: Answer) throws {
        let numbers = try database.map(
            "SELECT number FROM weir_question WHERE tbl = ?1 AND id IS ?2 AND sent = ?3 AND answer IS NULL",
            [.integer(Int64(table)), key, .integer(isSent ? 1 : 0)]
        ) { $0.value(at: 0) }
        for number in numbers {
            try database.run(
                """
                UPDATE weir_question SET answer = ?2, status = ?3, code = ?4, message = ?5, time_stamp = ?6, kept = ?7,
                at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE number = ?1
                """,
                [
                    number, .integer(try database.takeNumbers(of: "last_answer")), .text(answer.status.rawValue),
                    answer.code.map { .text($0) } ?? .null, answer.message.map { .text($0) } ?? .null,
                    answer.timeStamp.map { .integer($0) } ?? .null, answer.kept.map { .integer($0) } ?? .null,
                ])
        }
    }

    /// Answers the questions about edits of a table that have ended without being sent, as they had changed nothing.
    func answerUnchanged(_ table: CapturedTable) throws {
        let ended = try database.map(
            """
            SELECT id FROM weir_question AS q WHERE tbl = \(table.number) AND answer IS NULL AND NOT sent
            AND NOT EXISTS (SELECT 1 FROM \(table.edit) AS e WHERE e.id = q.id)
            AND id NOT IN (SELECT id FROM \(table.log) WHERE id IS NOT NULL)
            AND NOT EXISTS (SELECT 1 FROM weir_held AS h WHERE h.tbl = q.tbl AND h.id = q.id)
            """
        ) { $0.value(at: 0) }
        for key in ended { try answer(table.number, key, isSent: false, Answer(status: .unchanged)) }
    }

    /// Removes the oldest answers.
    func prune() throws {
        try database.run(
            """
            DELETE FROM weir_question WHERE answer <=
            (SELECT answer FROM weir_question WHERE answer IS NOT NULL ORDER BY answer DESC LIMIT 1 OFFSET \(Self.mostAnswers))
            """)
    }
}

extension ClientFile {
    /// Answers the questions about edits that have changed nothing.
    ///
    /// - Returns: whether there may have been any.
    func answerUnchanged() throws -> Bool {
        let questions = Questions(database: database)
        guard try questions.areOpen else { return false }
        try database.transaction {
            for table in tables { try questions.answerUnchanged(table) }
            try questions.prune()
        }
        return true
    }
}
