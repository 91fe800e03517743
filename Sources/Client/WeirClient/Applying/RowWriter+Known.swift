/// The version of a row that the file has.
struct KnownVersion {
    let timeStamp: Int64
    let isDeleted: Bool
    /// `nil` for the account itself.
    let owner: String?
}

extension KnownVersion {
    /// - Returns: `nil` for a row that the server is not known to have.
    init?(_ key: SQLValue, of table: CapturedTable, in database: Database) throws {
        let query = "SELECT time_stamp, deleted, owner FROM \(table.state) WHERE id = ?1"
        let found = try database.map(query, [key]) { row in
            Self(
                timeStamp: row.integer(at: 0), isDeleted: row.integer(at: 1) == 1,
                owner: row.isNull(at: 2) ? nil : row.string(at: 2))
        }.first
        guard let found else { return nil }
        self = found
    }
}

/// What the file knows of a row before another version of it is written.
extension RowWriter {
    /// What is known of a row.
    struct Known {
        /// Where its version is recorded.
        var place: SQLValue?
        /// The newest version that was received.
        var timeStamp: Int64?
        var isDeleted = false
        var owner: String?
        /// Which columns have an edit that is pending, or being sent.
        var edit: Edit?
        var sent: Edit?
        var isEdited: Bool { edit != nil || sent != nil }
        /// Whether the file has the row in a version of another history.
        var isForgotten: Bool { place != nil && timeStamp == nil }

        func isPending(_ column: CapturedTable.Column) -> Bool {
            edit?.masks.contains(column) == true || sent?.masks.contains(column) == true
        }
    }

    struct Edit {
        let masks: Masks
        /// Whether the app has deleted the row, and may have inserted it again.
        let hasDeletion: Bool
        /// Whether it is in the batch as a deletion.
        let isSentDeletion: Bool
        /// Whether it was in a batch whose outcome is not known.
        let wasSent: Bool
        /// Whether the app has inserted the row where it had none.
        var isInsertion: Bool { masks.isWhole && !hasDeletion }
        var isUnsentInsertion: Bool { isInsertion && !wasSent }
    }

    /// The words of a mask.
    struct Masks {
        let words: [Int64]

        func contains(_ column: CapturedTable.Column) -> Bool {
            isWhole || words[column.word] & column.bit != 0
        }

        var isEmpty: Bool { words.allSatisfy { $0 == 0 } }
        /// Whether the row was inserted or deleted.
        var isWhole: Bool { words[0] == -1 }
    }

    // MARK: Reading

    func known(_ key: SQLValue, hasEdits: Bool) throws -> Known {
        var known = Known()
        try selectState.rows([key]) { row in
            known.place = row.value(at: 0)
            // 0 is that of a row whose version was forgotten.
            known.timeStamp = row.integer(at: 1) == 0 ? nil : row.integer(at: 1)
            known.owner = row.isNull(at: 2) ? nil : row.string(at: 2)
            known.isDeleted = row.integer(at: 3) == 1
        }
        guard hasEdits else { return known }
        known.edit = try edit(selectEdit, key)
        known.sent = try edit(selectSent, key)
        return known
    }

    func edit(_ query: Statement, _ key: SQLValue) throws -> Edit? {
        var edit: Edit?
        try query.rows([key]) { row in
            edit = Edit(
                masks: Masks(words: (0..<table.words).map { row.integer(at: 3 + $0) }),
                hasDeletion: row.integer(at: 0) == -1,
                isSentDeletion: row.integer(at: 0) == -1 && row.integer(at: 1) == 1,
                wasSent: row.integer(at: 2) == 1)
        }
        return edit
    }
}
