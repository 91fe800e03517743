/// A row of the server that is not in the app's table, since the table cannot have it as it is.
public struct ParkedRow: Equatable, Sendable {
    /// The server's table.
    public let table: String
    /// The row's id.
    public let id: String
    /// Why it cannot be written: a table that the app does not have, a unique value that another row has.
    public let reason: String
    /// The row as it came: JSON with `values`.
    public let row: String
}

extension Weir {
    /// Rows that came and cannot be written; each answer of the server tries it again.
    public func parkedRows() throws -> [ParkedRow] {
        try openFile.database.map("SELECT name, id, reason, row FROM weir_parked ORDER BY sync_id, time_stamp") {
            ParkedRow(
                table: $0.string(at: 0), id: $0.string(at: 1), reason: $0.string(at: 2),
                row: String(decoding: $0.bytes(at: 3), as: UTF8.self))
        }
    }
}
