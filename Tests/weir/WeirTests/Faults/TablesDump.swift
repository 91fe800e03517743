import SQLite

/// The rows of a stopped server's tables that its log determines (I4), one text each.
enum TablesDump {
    /// Reads the tables under a data folder.
    ///
    /// Left out are the numbers of devices, which are internal to the store, and the offsets of the logs.
    static func read(_ folder: TestFolder) throws -> [String] {
        let connection = try Connection(path: folder.path + "/data/tables.db", access: .readOnly)
        var lines: [String] = []
        for table in try texts("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name", connection)
        where !table.hasPrefix("weir_") && !table.hasPrefix("sqlite_") {
            let columns = try texts("SELECT name FROM pragma_table_info('\(table)') ORDER BY cid", connection)
            let row = columns.map { "quote(\"\($0)\")" }.joined(separator: " || ' ' || ")
            lines += try texts("SELECT '\(table) ' || \(row) FROM \"\(table)\" ORDER BY sync_id, id", connection)
        }
        lines += try texts(
            """
            SELECT 'device ' || quote(owner) || quote(caller) || quote(knowledge_id) || ' ' || highest_batch || ' '
                || outcomes FROM weir_devices ORDER BY owner, caller, knowledge_id
            """, connection)
        lines += try texts(
            """
            SELECT 'outcome ' || quote(owner) || quote(caller) || quote(knowledge_id) || ' ' || batch || ' '
                || quote(outcome)
            FROM weir_outcomes JOIN weir_devices ON device = place / 16 ORDER BY owner, caller, knowledge_id, batch
            """, connection)
        lines += try texts(
            """
            SELECT 'partition ' || partition || ' ' || time_stamp || ' ' || schema_ordinal
            FROM weir_partitions ORDER BY partition
            """, connection)
        try connection.close()
        return lines
    }

    private static func texts(_ sql: String, _ connection: Connection) throws -> [String] {
        var statement = try connection.prepare(sql)
        var texts: [String] = []
        while try statement.step() { texts.append(try statement.text(at: 0)) }
        return texts
    }
}
