import CanonicalValues
import Postgres
import RecordStore
import SyncModel

/// Rows of one table with the same number of values, each column an array in Postgres's binary format.
///
/// That is the cheapest way to many rows that Postgres has: one statement, planned once, without a temporary table.
struct RowArrays {
    /// What rows share that go into one statement.
    struct Shape: Hashable {
        let table: Int
        let columns: Int
        /// Whether their first version is written.
        let areNew: Bool
    }

    /// How many rows a statement gets: with more, neither end grows faster, and the server begins later.
    static let maximumCount = 1000
    /// How many bytes a statement gets before it is sent.
    static let maximumBytes = 1 << 20

    /// The rows in the arrays.
    private(set) var keys: [RowKey] = []
    private var byteCount = 0
    private let table: Table
    private var columns: ColumnArrays
    private var reader = CanonicalValueReader()

    init(_ table: Table, columns count: Int) {
        self.table = table
        columns = ColumnArrays(RowColumns.types + table.columns.prefix(count).map(\.type.postgresType))
    }

    /// Whether it is time to send.
    var isFull: Bool { keys.count >= Self.maximumCount || byteCount >= Self.maximumBytes }

    /// The arrays as parameters.
    var parameters: PostgresParameters {
        var parameters = PostgresParameters()
        for array in columns.arrays { parameters.append(array) }
        return parameters
    }

    /// Removes the rows and keeps the memory.
    mutating func removeAll() {
        keys.removeAll(keepingCapacity: true)
        columns.removeAll()
        byteCount = 0
    }

    /// Appends a row.
    ///
    /// - Throws: `RecordStoreError` where its values are not those of the table.
    mutating func append(_ row: OrderedRow) throws {
        keys.append(row.key)
        byteCount += row.values.bytes.count + 200
        do {
            try columns.append(row)
            try row.values.forEachColumn { column, json in
                let type = table.columns[column].type
                try reader.read(json, as: type) { value in try columns.append(value, column: column, as: type) }
            }
        } catch let error as CanonicalValueError {
            throw Self.refusal(of: row.key, table.name, "\(error)")
        }
    }

    /// Names the row, never a value.
    static func refusal(of key: RowKey, _ table: String, _ reason: String) -> RecordStoreError {
        RecordStoreError(
            .refusedRow(key),
            message: "table \(table) refused the row with sync_id \(key.owner) and id \(key.id): \(reason)")
    }
}
