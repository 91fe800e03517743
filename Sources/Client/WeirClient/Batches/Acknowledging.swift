/// Ends a batch all of whose changes the server has applied.
struct Acknowledging {
    let database: Database

    /// Records what the server has now, and removes exactly what was frozen; later edits of the same rows stay pending.
    ///
    /// - Parameter timeStamps: the rows' after the changes, in the batch's order; 0 for a deletion of a row that the server
    ///   did not have.
    /// - Throws: `BatchMismatch` unless this is the batch without outcome.
    func acknowledge(_ number: Int64, timeStamps: [Int64]) throws {
        let batch = try Freezing.pending(in: database)
        guard let batch, batch.number == number, batch.changes == timeStamps.count else {
            throw BatchMismatch(expected: batch?.number, changes: batch?.changes ?? 0)
        }
        // Also of tables that are no longer listed.
        for table in try database.map("SELECT number FROM weir_table", [], { Int($0.integer(at: 0)) }) {
            let (sent, state) = (CapturedTable.sent(table), CapturedTable.state(table))
            let rows = try database.map("SELECT position, id, deleted FROM \(sent) ORDER BY position") { row in
                (position: Int(row.integer(at: 0)), id: row.value(at: 1), deleted: row.value(at: 2))
            }
            for row in rows {
                let timeStamp = timeStamps[row.position]
                if timeStamp == 0 {
                    try database.run("DELETE FROM \(state) WHERE id = ?1", [row.id])
                    continue
                }
                try database.run(
                    """
                    INSERT INTO \(state) (id, time_stamp, deleted) VALUES (?1, ?2, ?3) ON CONFLICT (id)
                    DO UPDATE SET time_stamp = excluded.time_stamp, deleted = excluded.deleted
                    """, [row.id, .integer(timeStamp), row.deleted])
            }
            if !rows.isEmpty { try database.run("DELETE FROM \(sent)") }
        }
        try database.run("DELETE FROM weir_batch WHERE number = ?1", [.integer(number)])
    }
}

/// An outcome that is not of the batch that was sent.
package struct BatchMismatch: Error, Equatable {
    /// The number of the batch that has no outcome; `nil` if every batch has one.
    package let expected: Int64?
    /// How many changes it has.
    package let changes: Int
}
