/// The rows that came and could not be written, such as for a unique value that another row has.
struct ParkedRows {
    let applying: Applying

    /// How many are tried with one answer, so that many that stay impossible delay none; the next answer continues after them.
    static let mostTried = 1000

    private var file: ClientFile { applying.file }
    private var database: Database { applying.database }

    /// Where a table's rows are continued.
    struct Position {
        let id: String
        let owner: String
    }

    /// Tries again to write them, in transactions of some milliseconds.
    ///
    /// Rows of tables that the app does not have are not looked at.
    func tryAgain() throws {
        try file.foldLogs()
        for (name, writer) in applying.writers.sorted(by: { $0.key < $1.key }) {
            // Most files have none, at any time.
            guard try database.value("SELECT 1 FROM weir_parked WHERE name = ?1 LIMIT 1", [.text(name)]) != nil else {
                continue
            }
            var isWritten = try tryAll(of: name)
            if try exchange(name, writer) { isWritten = true }
            // One that was written may have freed what another waits for.
            while isWritten { isWritten = try tryAll(of: name) }
        }
    }

    /// - Returns: whether one was written.
    private func tryAll(of table: String) throws -> Bool {
        var isWritten = false
        var tried = 0
        repeat {
            let last = file.lastTried[table]
            let parked = try database.map(
                """
                SELECT id, sync_id, row FROM weir_parked WHERE name = ?1 AND (id, sync_id) > (?2, ?3)
                ORDER BY id, sync_id LIMIT \(Applying.slice)
                """, [.text(table), .text(last?.id ?? ""), .text(last?.owner ?? "")]
            ) { (position: Position(id: $0.string(at: 0), owner: $0.string(at: 1)), row: $0.bytes(at: 2)) }
            try file.applying { _ in
                try applying.fold()
                let state = try Applying.WriteState(file)
                for (_, json) in parked {
                    var reader = JSONReader(json)
                    if try applying.write(try ServerRow(&reader), state) { isWritten = true }
                }
            }
            tried += parked.count
            // At the end it begins again with the next call.
            file.lastTried[table] = parked.count < Applying.slice ? nil : parked.last?.position
        } while file.lastTried[table] != nil && tried < Self.mostTried
        return isWritten
    }

    /// Writes rows that wait for each other's unique values, such as two that have exchanged their positions.
    ///
    /// SQLite checks unique values with each row. So the rows are removed, and inserted with their new values; those that another row
    /// keeps from it stay as they are. Weir's connection enforces no foreign keys, so no children are deleted with them.
    ///
    /// - Returns: whether some were written.
    private func exchange(_ table: String, _ writer: RowWriter) throws -> Bool {
        try file.applying { _ in
            try applying.fold()
            var rows = try database.map(
                "SELECT row FROM weir_parked WHERE name = ?1 ORDER BY time_stamp DESC LIMIT \(Applying.slice)",
                [.text(table)]
            ) { $0.bytes(at: 0) }.map { json in
                var reader = JSONReader(json)
                return try ServerRow(&reader)
            }
            // One alone has been tried.
            while rows.count > 1 {
                try database.run("SAVEPOINT weir_exchange")
                let impossible = try rewrite(rows, writer)
                if impossible.isEmpty {
                    for row in rows {
                        try database.run(
                            "DELETE FROM weir_parked WHERE name = ?1 AND id = ?2 AND sync_id = ?3",
                            [.text(table), .text(row.id), .text(row.syncID)])
                    }
                    try database.run("RELEASE weir_exchange")
                    return true
                }
                try database.run("ROLLBACK TO weir_exchange")
                try database.run("RELEASE weir_exchange")
                rows = rows.indices.filter { !impossible.contains($0) }.map { rows[$0] }
            }
            return false
        }
    }

    /// Removes rows and writes them again.
    ///
    /// - Returns: the indexes of those that cannot be removed or written; then what was done is to be undone.
    private func rewrite(_ rows: [ServerRow], _ writer: RowWriter) throws -> Set<Int> {
        let removed = try rows.map { try writer.remove($0) }
        var impossible = Set(removed.indices.filter { removed[$0] == nil })
        if !impossible.isEmpty { return impossible }
        for (index, row) in rows.enumerated() {
            do {
                try writer.write(row, hasEdits: false, removed: removed[index])
            } catch is RowWriter.Unwritable {
                impossible.insert(index)
            }
        }
        return impossible
    }
}
