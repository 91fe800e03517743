/// An edit of the batch.
struct SentRow {
    let position: Int
    let key: SQLValue
    let isDeletion: Bool
    /// The values that the app has seen where others were pulled since, as JSON.
    let seen: [UInt8]?
    /// The values before that are known, which pulled rows replace by the server's.
    let image: [(column: CapturedTable.Column, value: SQLValue)]

    static func all(of table: CapturedTable, in database: Database) throws -> [SentRow] {
        let before = ValuesBefore(table: table)
        let columns = (["position", "id", "deleted", "seen"] + before.columns).joined(separator: ", ")
        return try database.map("SELECT \(columns) FROM \(table.sent) ORDER BY position") { row in
            SentRow(
                position: Int(row.integer(at: 0)), key: row.value(at: 1), isDeletion: row.integer(at: 2) == 1,
                seen: row.isNull(at: 3) ? nil : row.bytes(at: 3), image: before.read(row, from: 4))
        }
    }
}

/// The changes of a batch as they were sent.
enum SentChange {
    static func all(in batch: Batch) throws -> [ArraySlice<UInt8>] {
        var changes: [ArraySlice<UInt8>] = []
        var reader = JSONReader(batch.body)
        try reader.object { reader, name in
            if name == "changes" { try reader.array { changes.append(try $0.text()) } } else { try reader.skip() }
        }
        return changes
    }
}
