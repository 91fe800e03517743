/// What becomes of a row's edits where another version is written beneath them.
extension RowWriter {
    /// The device that receives a row, by which its own versions are known.
    struct Receiver {
        /// `nil` before it has a name.
        let device: String?
        /// Whether everything is pulled since the outcome of its last batch is not known.
        let isDraining: Bool
        /// Whose the rows are that the server does not have yet.
        let owners: RowOwners
    }

    /// Records which version the app has seen, in edits beneath which another one is written.
    ///
    /// An edit has one of its own only then; without it, it is of the newest version that the file has when it is frozen. So it remains
    /// where the app has seen this version, too: one that this device has written.
    ///
    /// - Parameter seen: ``seenValues(of:_:beneath:)`` from before it was written.
    func keepBase(
        of key: SQLValue, _ known: Known, beneath row: ServerRow, _ receiver: Receiver, _ seen: [String: SQLValue]?
    ) throws {
        guard known.isEdited, known.timeStamp.map({ $0 < row.timeStamp }) ?? true else {
            return
        }
        guard let base = try known.timeStamp ?? baseOfUnknown(known, beneath: row, receiver) else { return }
        let isOwn = try receiver.device.map { try row.isWritten(by: $0, of: account) } ?? false
        // The app has inserted the row over a tombstone, and has seen no other version.
        let isOverTombstone = known.isDeleted && known.sent == nil && known.edit?.isUnsentInsertion == true
        let (seenBase, seen) = isOverTombstone ? (0, nil) : (base, seen)
        for (side, edit) in [(table.edit, known.edit), (table.sent, known.sent)] {
            guard let edit else { continue }
            // A copy of the file may have written it under the same name, unless this one has sent the row without an outcome.
            let isOwn = isOwn && (known.sent != nil || edit.wasSent)
            // Another device's tombstone that this one has edited is its own version as well, but the app has not seen the deletion. One
            // that was sent under the name that the device had before may have become this tombstone; in another history it has its name still.
            let mayHaveSentIt = receiver.isDraining && edit.wasSent && !known.isForgotten
            let isDeletionOfIt = edit.hasDeletion && (isOwn || mayHaveSentIt)
            let isSeen = row.isDeleted ? isDeletionOfIt || known.sent?.isSentDeletion == true : isOwn
            if isSeen { continue }
            try database.run(
                "UPDATE \(side) SET seen = CASE WHEN base IS NULL THEN ?3 ELSE seen END, base = coalesce(base, ?2) WHERE id = ?1",
                [key, .integer(seenBase), seen?[side] ?? .blob(json(of: []))])
        }
    }

    /// The version that the app has seen of a row whose version the file does not know; `nil` if that is the one that has come.
    private func baseOfUnknown(_ known: Known, beneath row: ServerRow, _ receiver: Receiver) throws -> Int64? {
        // A row that the app has never seen, unless it is this device's own, of a batch whose outcome was lost.
        guard row.isDeleted else { return receiver.isDraining ? nil : 0 }
        // There is nothing in a tombstone that could be overwritten, unless it is that of a row which the app had: in another history,
        if known.isForgotten {
            // but not where the app has inserted it over the tombstone.
            let isInsertion = (known.sent ?? known.edit)?.isInsertion ?? false
            return known.isDeleted && isInsertion ? nil : PendingRow.anyVersion
        }
        // or by an insertion that the server has stored before another device has deleted the row.
        let wasSent = known.sent != nil || known.edit?.wasSent == true
        return try wasSent && isCreatedHere(row) ? PendingRow.anyVersion : nil
    }

    /// Whether this device has created a row, be it under a name that it had before.
    private func isCreatedHere(_ row: ServerRow) throws -> Bool {
        guard let creator = try row.readCreator() else { return false }
        return try SessionRecord(database: database).isOwnName(creator)
    }

    /// The values that the app has seen in the columns of its edits, as JSON of the contract, by the table of the edit; those of a version
    /// beneath which another one is about to be written.
    func seenValues(of key: SQLValue, _ known: Known, beneath row: ServerRow) throws -> [String: SQLValue]? {
        guard known.isEdited, let timeStamp = known.timeStamp, timeStamp < row.timeStamp else { return nil }
        let before = ValuesBefore(table: table)
        var seen: [String: SQLValue] = [:]
        for side in [table.edit, table.sent] {
            let image = try database.map(
                "SELECT \(before.columns.joined(separator: ", ")) FROM \(side) WHERE id = ?1 AND base IS NULL", [key]
            ) { before.read($0, from: 0) }.first
            if let image { seen[side] = .blob(json(of: image)) }
        }
        return seen
    }

    /// Gives an edit of a row that was made since a change of it was sent the base of that change, which the server has stored in a tombstone:
    /// the app has not seen the deletion before either.
    func keepBase(of key: SQLValue, following change: ChangeContent) throws {
        let before = ValuesBefore(table: table)
        let image = try database.map(
            """
            SELECT \(before.columns.joined(separator: ", ")) FROM \(table.edit)
            WHERE id = ?1 AND \(Self.hasNotSeenDeletion)
            """, [key]
        ) { before.read($0, from: 0) }.first
        guard let image else { return }
        try database.run(
            "UPDATE \(table.edit) SET base = ?2, seen = ?3 WHERE id = ?1",
            [key, .integer(change.base), .blob(json(of: image))])
    }

    /// A condition for edits with which the app has deleted no row, be it that it was inserted again.
    static let hasNotSeenDeletion = "base IS NULL AND v0 <> -1"

    /// A row's edits that have no outcome yet, with the values before that are known: the newest one first, then that of the batch.
    func pending(_ key: SQLValue) throws -> [(masks: Masks, before: [NamedValue])] {
        let before = ValuesBefore(table: table)
        let names = ((0..<table.words).map { "m\($0)" } + before.columns).joined(separator: ", ")
        return try [table.edit, table.sent].flatMap { side in
            try database.map("SELECT \(names) FROM \(side) WHERE id = ?1", [key]) { row in
                (
                    Masks(words: (0..<table.words).map { row.integer(at: $0) }),
                    permitted(before.read(row, from: table.words))
                )
            }
        }
    }

    /// Removes edits with which nothing is sent; of one in the batch, what it covers, since the batch has its outcome still to come.
    func endEdits(of key: SQLValue) throws {
        try database.run("DELETE FROM \(table.edit) WHERE id = ?1", [key])
        let words = (0..<table.words).map { "m\($0) = 0, v\($0) = 0" }.joined(separator: ", ")
        try database.run("UPDATE \(table.sent) SET \(words) WHERE id = ?1", [key])
    }
}

extension RowWriter.Known {
    /// Whether edits of a row that is not in the table have left nothing to send, as it was gone from both sides: the deletion of a row
    /// that the server does not have, or no longer.
    func isOver(_ receiver: RowWriter.Receiver?) -> Bool {
        guard let receiver, isEdited else { return false }
        if isDeleted { return sent?.isSentDeletion ?? true }
        return timeStamp == nil && sent == nil && !receiver.isDraining
    }
}
