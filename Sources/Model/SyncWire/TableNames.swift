import SyncModel

/// The names of the tables in a message, for readers without the schema (`weir.v1.TableName`).
struct TableNames {
    private let tables: [Table]
    private var isUsed: [Bool]

    init(_ schema: Schema) {
        tables = schema.tables
        isUsed = [Bool](repeating: false, count: tables.count)
    }

    /// Traps when the schema has no such table: a message contains only tables of its own schema.
    mutating func insert(_ table: Int) {
        precondition(tables.indices.contains(table), "the message numbers tables of its schema version")
        isUsed[table] = true
    }

    func contains(_ table: Int) -> Bool { isUsed.indices.contains(table) && isUsed[table] }

    mutating func removeAll() {
        for index in isUsed.indices { isUsed[index] = false }
    }

    /// By ascending index.
    func write(to writer: inout WireWriter, field: Int) {
        for index in isUsed.indices where isUsed[index] { write(index, to: &writer, field: field) }
    }

    /// The bytes that a table's name adds to a message; traps as ``insert(_:)``.
    func size(of table: Int, field: Int) -> Int {
        WireWriter.size { write(table, to: &$0, field: field) }
    }

    private func write(_ table: Int, to writer: inout WireWriter, field: Int) {
        writer.message(field) {
            $0.number(1, table)
            $0.text(2, tables[table].name)
        }
    }
}
