import CanonicalValues
import Postgres
import RecordStore
import RelationalTables
import SyncModel

/// Rows of one table with the same number of values, each column an array in Postgres's binary format.
///
/// This is the cheapest way to write many rows: one statement, planned once, without a temporary table.
struct RowArrays {
    /// Rows of the same shape share a statement.
    struct Shape: Hashable {
        let table: Int
        let columns: Int
        /// Whether it writes their first version.
        let areNew: Bool
    }

    /// More rows in a statement are not faster, and the server starts later.
    private static let maximumCount = 1000
    private static let maximumBytes = 1 << 20

    private var count = 0
    private var byteCount = 0
    private let table: Table
    private var columns: ColumnArrays
    private var reader = CanonicalValueReader()

    init(_ layout: TableLayout, columns: Int) {
        table = layout.table
        self.columns = ColumnArrays(layout.arrayTypes(columns: columns))
    }

    /// Whether the rows should be sent.
    var isFull: Bool { count >= Self.maximumCount || byteCount >= Self.maximumBytes }

    var parameters: PostgresParameters { PostgresParameters(columns.arrays) }

    /// Keeps the memory.
    mutating func removeAll() {
        count = 0
        columns.removeAll()
        byteCount = 0
    }

    /// - Throws: `RecordStoreError` if a value does not fit its column.
    mutating func append(_ row: OrderedRow) throws {
        count += 1
        byteCount += row.values.bytes.count + 200
        do {
            try columns.append(row)
            try row.values.forEachColumn { column, json in
                let type = table.columns[column].type
                try reader.read(json, as: type) { value in try columns.append(value, column: column, as: type) }
            }
        } catch let error as CanonicalValueError {
            throw RecordStoreError.refusedRow(row.key, table: table.name, reason: "\(error)")
        }
    }
}
