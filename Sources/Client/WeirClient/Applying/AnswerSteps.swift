/// Applies an answer in transactions of some milliseconds, between which the app can write.
///
/// The batch's outcome comes first, then the rows, those that waited, owners that are revoked or begin again, and rows whose parents are
/// missing; the vector follows with the last transaction, but for the names of new owners, and a small answer is one transaction alone. A
/// process that is killed in between receives the answer again, in which every row is found to be there.
package struct AnswerSteps {
    private let applying: Applying
    private let answer: SyncAnswer
    /// The outcome that was not recorded yet.
    private var batch: BatchOutcome?
    private var rows: ArraySlice<ServerRow>
    private var areRowsWritten = false
    private var parked: ParkedRows
    private var owners: [OwnerRows]
    private var orphans: OrphanRows
    /// Whether everything must be pulled again; known at the end.
    package private(set) var isIncomplete = false

    package init(_ answer: SyncAnswer, _ applying: Applying) {
        self.applying = applying
        self.answer = answer
        batch = answer.batch
        rows = answer.changes[...]
        parked = ParkedRows(applying: applying)
        orphans = OrphanRows(applying: applying)
        owners =
            answer.resync.map { OwnerRows(applying: applying, owner: $0, end: .resync) }
            + answer.revoked.map { OwnerRows(applying: applying, owner: $0, end: .revoked) }
    }

    /// Runs the next transaction.
    ///
    /// - Returns: whether others follow.
    package mutating func next() throws -> Bool {
        if try run() { return true }
        try applying.file.refusals.keepWaiting(in: applying.database)
        return false
    }

    private mutating func run() throws -> Bool {
        if let batch, batch.results.count + rows.count > applying.slice || slice.count < rows.count {
            try applyingFolded { try $0.complete(batch) }
            self.batch = nil
            return true
        }
        if !areRowsWritten { return try !writeNextRows() }
        if try parked.next() { return true }
        if !owners.isEmpty {
            if try !owners[0].next() { owners.removeFirst() }
            return true
        }
        // Parents may follow on the next page.
        if !answer.hasMore, try orphans.next() { return true }
        isIncomplete = try applyingFolded { try Vector(database: $0.database).update(answer) }
        return false
    }

    /// The rows of the next transaction.
    private var slice: ArraySlice<ServerRow> {
        var bytes = 0
        return rows.prefix(applying.slice).prefix { row in
            defer { bytes += row.json.count }
            return bytes < Applying.sliceBytes
        }
    }

    /// - Returns: whether that was all.
    private mutating func writeNextRows() throws -> Bool {
        let slice = slice
        let isFirst = rows.startIndex == answer.changes.startIndex
        let rest = rows.dropFirst(slice.count)
        let updated: Bool? = try applyingFolded { applying in
            if let batch { try applying.complete(batch) }
            try applying.write(slice)
            guard rest.isEmpty, owners.isEmpty, try !parked.exist, try answer.hasMore || orphans.settleFew() else {
                // A process that is killed now is still informed if an owner is no longer granted.
                if isFirst { try Vector(database: applying.database).addOwners(Set(answer.changes.map(\.syncID))) }
                return nil
            }
            return try Vector(database: applying.database).update(answer)
        }
        batch = nil
        rows = rest
        areRowsWritten = rest.isEmpty
        guard let updated else { return false }
        isIncomplete = updated
        return true
    }

    /// Runs a closure in a transaction that knows all edits, and captures none.
    private func applyingFolded<Result>(_ body: (Applying) throws -> Result) throws -> Result {
        try applying.file.foldLogs()
        return try applying.file.applying(isLong: answer.changes.count > applying.slice) { _ in
            try applying.file.fold()
            return try body(applying)
        }
    }
}
