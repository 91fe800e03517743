import LoadTools
import SQLite
import WeirClient

/// What the figures of `WeirClient` compare with: rows that one prepared statement writes, in transactions as long as those of a pull.
enum PreparedUpserts {
    /// - Parameter write: binds a row's values and runs the statement.
    /// - Returns: the seconds that the transactions took.
    static func seconds<Row>(
        _ upsert: String, _ rows: [Row], on connection: Connection, _ write: (Row, inout Statement) throws -> Void
    ) throws -> Double {
        let start = SystemCall.nanoseconds()
        for first in stride(from: 0, to: rows.count, by: Applying.slice) {
            try connection.transaction(.immediate) {
                var statement = try connection.prepare(upsert)
                for row in rows[first..<min(first + Applying.slice, rows.count)] { try write(row, &statement) }
            }
        }
        return SystemCall.seconds(since: start)
    }
}
