/// Writes rows that wait for each other's unique values, such as two that have exchanged their positions.
///
/// SQLite checks unique values with each row. So the rows are removed, and inserted with their new values; those that another row keeps
/// from it stay as they are, and so do those that a trigger of the app does not let go, or come back. Weir's connection enforces no foreign
/// keys, so no children are deleted with them.
struct UniqueExchange {
    let applying: Applying
    let writer: RowWriter
    /// The server's table.
    let table: String

    /// How many rows are exchanged in one transaction; those that wait for each other must be among them.
    private static let mostRows = 250

    private var database: Database { applying.database }

    /// Exchanges the newest of the rows that wait, in one transaction.
    ///
    /// - Returns: whether some were written.
    func run() throws -> Bool {
        try applying.file.applying { _ in
            try applying.file.fold()
            let waiting = try database.map(
                "SELECT row FROM weir_parked WHERE name = ?1 AND NOT orphan ORDER BY time_stamp DESC LIMIT \(Self.mostRows)",
                [.text(table)]
            ) { $0.bytes(at: 0) }.map { json in
                var reader = JSONReader(json)
                return try ServerRow(&reader)
            }
            // What is tried leaves no trace: the app's triggers see those rows only that are exchanged.
            var (rows, refusals) = ([ServerRow](), 0)
            repeat {
                refusals = applying.file.refusals.count
                rows = try trying { try possible(waiting) }
                // One that does not come back takes no part the next time.
            } while applying.file.refusals.count > refusals
            // One alone has been tried.
            guard rows.count > 1 else { return false }
            try database.run("SAVEPOINT weir_exchange")
            let removed = try rows.map { try remove($0) }
            for (row, removed) in zip(rows, removed) {
                do {
                    try applying.write(row, by: writer, to: nil, removed: removed)
                } catch is RowWriter.Unwritable {
                    // A trigger of the app's has written something else this time.
                    try database.run("ROLLBACK TO weir_exchange")
                    try database.run("RELEASE weir_exchange")
                    return false
                }
                try ParkedRows.remove(row, in: database)
            }
            try database.run("RELEASE weir_exchange")
            return true
        }
    }

    /// Runs a closure and takes back what it has changed.
    private func trying<Result>(_ body: () throws -> Result) throws -> Result {
        try database.run("SAVEPOINT weir_exchange")
        let result = try body()
        try database.run("ROLLBACK TO weir_exchange")
        try database.run("RELEASE weir_exchange")
        return result
    }

    /// Those of the rows that can be exchanged, each of which is written and put back once at most; none if one does not come back, which
    /// is known from then on.
    private func possible(_ rows: [ServerRow]) throws -> [ServerRow] {
        var exchanged: [SQLValue: (row: ServerRow, removed: RemovedRow, isWritten: Bool)] = [:]
        for row in rows {
            guard let key = writer.table.definition.keyKind.key(ofID: row.id), let removed = try remove(row)
            else { continue }
            exchanged[key] = (row, removed, false)
        }
        for row in rows {
            guard let key = writer.table.definition.keyKind.key(ofID: row.id), let found = exchanged[key],
                found.row == row
            else { continue }
            do {
                try applying.write(row, by: writer, to: nil, removed: found.removed)
                exchanged[key]?.isWritten = true
            } catch is RowWriter.Unwritable {
                guard try putBack(key, &exchanged) else { return [] }
            }
        }
        return rows.filter { row in
            // Two owners may have rows of one id.
            writer.table.definition.keyKind.key(ofID: row.id).map { exchanged[$0]?.row == row } ?? false
        }
    }

    /// - Returns: `nil`, with nothing removed, for a row that takes no part.
    private func remove(_ row: ServerRow) throws -> RemovedRow? {
        do {
            return try applying.refusable(Refusals.Step(row, isRemoval: true)) { try writer.remove(row) }
        } catch is RowWriter.Unwritable {
            return nil
        }
    }

    /// Runs what puts a row back; if the app refuses it, this version of the row takes no part from then on.
    ///
    /// - Returns: whether that was possible.
    private func puttingBack(_ row: ServerRow, _ body: () throws -> Void) throws -> Bool {
        let step = Refusals.Step(row, isRemoval: true)
        do {
            try applying.refusable(step, body)
            return true
        } catch let error as RowWriter.Unwritable {
            applying.file.refusals.add(step, error.reason)
            return false
        }
    }

    /// Gives a row what it had, and with it each row that has taken one of its unique values meanwhile.
    ///
    /// - Returns: whether that was possible.
    private func putBack(
        _ key: SQLValue, _ exchanged: inout [SQLValue: (row: ServerRow, removed: RemovedRow, isWritten: Bool)]
    ) throws -> Bool {
        var waiting = [key]
        while let key = waiting.popLast() {
            guard let (row, removed, isWritten) = exchanged.removeValue(forKey: key) else { continue }
            if isWritten, try !puttingBack(row, { try writer.delete(key) }) { return false }
            for holder in try writer.holders(ofValuesOf: removed) {
                guard let other = exchanged[holder] else { continue }
                // It is removed at once, so that this row can be put back.
                if other.isWritten, try !puttingBack(other.row, { try writer.delete(holder) }) { return false }
                exchanged[holder]?.isWritten = false
                waiting.append(holder)
            }
            guard try puttingBack(row, { try writer.insert(key, removed.values) }) else { return false }
        }
        return true
    }
}

extension RowWriter {
    /// The keys of rows that have a unique value that a removed row had.
    fileprivate func holders(ofValuesOf removed: RemovedRow) throws -> [SQLValue] {
        try table.definition.uniqueKeys.flatMap { unique in
            let values = unique.terms.map { term in
                removed.values.first { foldedName($0.column.name) == foldedName(term.column) }?.value
            }
            // With a column that is no value of its own, such as a generated one, it is not known.
            let known = zip(unique.terms, values).compactMap { term, value in value.map { (term, $0) } }
            if known.isEmpty { return [SQLValue]() }
            let conditions = known.enumerated().map {
                "\(quoted($1.0.column)) = ?\($0 + 1) COLLATE \(quoted($1.0.collation))"
            }
            return try database.map(
                "SELECT \(table.quotedKey) FROM \(table.quotedName) WHERE \(conditions.joined(separator: " AND "))",
                known.map(\.1)
            ) { $0.value(at: 0) }
        }
    }
}
