/// A row by its table and key.
public struct RowReference: Hashable, Sendable {
    /// The app's table.
    public let table: String
    /// The row's key.
    public let key: SQLValue

    /// Makes a reference.
    public init(table: String, key: SQLValue) { (self.table, self.key) = (table, key) }
}

/// What became of a change of a row.
public struct RowOutcome: Equatable, Sendable {
    /// What the server has decided, or why it did not have to.
    public enum Status: String, Sendable {
        /// The change is stored.
        case applied
        /// The values are stored, and the row is and stays deleted, since another device has deleted it before.
        case deleted
        /// The change is not stored: another device has changed the row. The row has the server's values.
        case conflict
        /// The change is not stored, for the reason in ``RowOutcome/code``.
        case refused
        /// Nothing was to be sent: the row is as the server has it.
        case unchanged
        /// The app has taken the change back, with ``Weir/discard(_:_:)``.
        case discarded
        /// It is older than the newest 10,000 outcomes, and is not kept any more.
        case forgotten
    }

    /// The row.
    public let row: RowReference
    /// What became of it.
    public let status: Status
    /// The code of a refusal.
    public let code: String?
    /// The server's message, for developers.
    public let message: String?
    /// The row's version after a change that is stored.
    public let timeStamp: Int64?
    /// The change with the server's row, where it was not stored, or stored in a deleted row: ``Weir/resolve(_:_:)`` says what can be done.
    ///
    /// `nil` if it is not kept any more.
    public let kept: KeptEdit?
    /// Its place in the list of outcomes, by which later ones are asked for; 0 where nothing had to be asked.
    public let place: Int64
}

extension ClientFile {
    /// Reads outcomes that are complete.
    ///
    /// - Parameter condition: of rows of `weir_outcome`, and their order.
    func outcomes(where condition: String, _ values: [SQLValue]) throws -> [(number: Int64, outcome: RowOutcome)] {
        let found = try database.map(
            """
            SELECT o.number, t.name, o.id, o.status, o.code, o.message, o.time_stamp, o.kept, o.place
            FROM weir_outcome AS o JOIN weir_table AS t ON t.number = o.tbl WHERE o.place IS NOT NULL AND \(condition)
            """, values
        ) { row in
            (
                number: row.integer(at: 0), row: RowReference(table: row.string(at: 1), key: row.value(at: 2)),
                status: row.string(at: 3), code: row.isNull(at: 4) ? nil : row.string(at: 4),
                message: row.isNull(at: 5) ? nil : row.string(at: 5),
                timeStamp: row.isNull(at: 6) ? nil : row.integer(at: 6),
                kept: row.isNull(at: 7) ? nil : row.integer(at: 7), place: row.integer(at: 8)
            )
        }
        return try found.map { found in
            (
                found.number,
                RowOutcome(
                    row: found.row, status: RowOutcome.Status(rawValue: found.status) ?? .forgotten,
                    code: found.code,
                    message: found.message, timeStamp: found.timeStamp,
                    kept: try found.kept.flatMap { try keptEdits(where: "a.number = ?1", [.integer($0)]).first },
                    place: found.place)
            )
        }
    }
}

extension Weir {
    /// The outcomes that the app has asked for, with ``write(foreignKeys:_:)``, ``outcome(of:_:)`` or ``resolve(_:_:)``, in the
    /// order in which they became known.
    ///
    /// They are kept in the file, the newest 10,000 of them, so an app that was ended meanwhile learns of them, too.
    ///
    /// - Parameter place: the ``RowOutcome/place`` of the last one that is known; 0 for all.
    public func outcomes(after place: Int64 = 0) throws -> [RowOutcome] {
        try openFile.outcomes(where: "o.place > ?1 ORDER BY o.place", [.integer(place)]).map(\.outcome)
    }

    /// The outcomes as ``outcomes(after:)`` has them, and later ones as they become known, also in other processes.
    ///
    /// - Parameter place: the place of the last one that is known; 0 for all.
    /// - Returns: a sequence of one or more outcomes each, which ends with ``close()``.
    public nonisolated func outcomeUpdates(after place: Int64 = 0) -> RowOutcomes {
        RowOutcomes(weir: self, place: place, changes: changes.stream())
    }

    /// What becomes of the changes of a row that are made by now, by any connection: it waits until it is known.
    ///
    /// It does not return where nothing syncs, where a row cannot be sent, or while a value waits for a column that the server does not have;
    /// in a task that is cancelled it does.
    ///
    /// - Returns: `unchanged` if the row has no changes whose outcome is to come.
    /// - Throws: `WeirError`; `CancellationError`.
    public nonisolated func outcome(of table: String, _ key: SQLValue) async throws -> RowOutcome {
        let row = RowReference(table: table, key: key)
        guard let number = try await whenUnlocked({ try await track(row) }) else {
            return RowOutcome(
                row: row, status: .unchanged, code: nil, message: nil, timeStamp: nil, kept: nil, place: 0)
        }
        return try await outcomes(of: [number: row])[0]
    }

    private func track(_ row: RowReference) throws -> Int64? {
        let file = try openFile
        let table = try captured([row.table])[0]
        return try file.database.transaction { try TrackedOutcomes(database: file.database).track(table, row.key) }
    }

    /// Waits for outcomes that are tracked.
    ///
    /// - Parameter tracked: their rows, by their numbers.
    nonisolated func outcomes(of tracked: [Int64: RowReference]) async throws -> [RowOutcome] {
        for await _ in changes.stream() {
            if let outcomes = try await whenUnlocked({ try await completeOutcomes(of: tracked) }) { return outcomes }
        }
        try Task.checkCancellation()
        throw WeirError.closed
    }

    /// - Returns: in the order of their numbers; `nil` while one is not complete, or the file is closed by ``suspend()``.
    private func completeOutcomes(of tracked: [Int64: RowReference]) throws -> [RowOutcome]? {
        guard let first = tracked.keys.min(), let last = tracked.keys.max() else { return [] }
        if isSuspended, !isClosed { return nil }
        let file = try openFile
        let range: [SQLValue] = [.integer(first), .integer(last)]
        let open = try file.database.map(
            "SELECT number FROM weir_outcome WHERE place IS NULL AND number BETWEEN ?1 AND ?2", range
        ) { $0.integer(at: 0) }
        if open.contains(where: { tracked[$0] != nil }) { return nil }
        let found = Dictionary(
            try file.outcomes(where: "o.number BETWEEN ?1 AND ?2", range).map { ($0.number, $0.outcome) },
            uniquingKeysWith: { first, _ in first })
        return tracked.keys.sorted().compactMap { number in
            found[number]
                ?? tracked[number].map {
                    RowOutcome(
                        row: $0, status: .forgotten, code: nil, message: nil, timeStamp: nil, kept: nil, place: 0)
                }
        }
    }
}

/// The outcomes of rows, as they become known: ``Weir/outcomeUpdates(after:)``.
public struct RowOutcomes: AsyncSequence, Sendable {
    let weir: Weir
    let place: Int64
    let changes: AsyncStream<Int>

    /// Reads the outcomes from the file, so that none is missed by an app that is slow to read.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let weir: Weir
        var place: Int64
        var changes: AsyncStream<Int>.AsyncIterator

        /// The next outcomes; `nil` after ``Weir/close()``.
        public mutating func next() async throws -> [RowOutcome]? {
            while await changes.next() != nil {
                let found = try await whenUnlocked { [weir, place] in try await weir.newOutcomes(after: place) }
                if let found, let last = found.last {
                    place = last.place
                    return found
                }
            }
            return nil
        }
    }

    /// Begins with the outcomes after the place.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(weir: weir, place: place, changes: changes.makeAsyncIterator())
    }
}

extension Weir {
    /// - Returns: `nil` while Weir is suspended, or after it was closed.
    fileprivate func newOutcomes(after place: Int64) throws -> [RowOutcome]? {
        isSuspended || isClosed ? nil : try outcomes(after: place)
    }
}
