import SQLite
import SyncModel

extension StreamFile {
    /// Writes a row into its owner's stream and removes the version that it replaces.
    ///
    /// - Parameter before: the timeStamp of the replaced version, which has the same creating device; zero for a new
    ///   row.
    func put(
        _ row: OrderedRow, _ renderer: RowJSON, over before: TimeStamp, _ transaction: inout FileTransaction
    ) throws {
        var json: [UInt8] = []
        swap(&json, &self.json)
        defer { swap(&json, &self.json) }
        json.removeAll(keepingCapacity: true)
        let columns = Int64(try renderer.append(row, to: &json))
        let numbers = transaction.move(row.knowledgeID, of: row.key.owner, to: row.timeStamp)
        let device = numbers.device.number
        if before > .zero {
            try removeRow(row.key, owner: numbers.owner, device: device, at: before, &transaction.state)
        }
        if numbers.device.isIndexed {
            if before > .zero {
                try removeTimeEntry(owner: numbers.owner, at: before, device: device, &transaction.state)
            }
            try addTimeEntry(owner: numbers.owner, at: row.timeStamp, device: device, &transaction.state)
        }
        let id = row.key.id.text
        let checksum = Checksum.row(
            owner: numbers.owner, device: device, timeStamp: row.timeStamp.rawValue,
            table: Int64(row.key.table), isExact: row.isExact ? 1 : 0, createdAt: row.createdAt,
            columns: columns, id: id.utf8.span.bytes,
            json: json.span.bytes)
        transaction.state.add(checksum)
        var statement = try connection.statement(
            """
            INSERT INTO stream( \
            owner_no, device_no, time_stamp, table_no, row_id, checksum, json, is_exact, created_at, columns) \
            VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
            """)
        try statement.bind(integer: numbers.owner, at: 1)
        try statement.bind(integer: device, at: 2)
        try statement.bind(integer: row.timeStamp.rawValue, at: 3)
        try statement.bind(integer: Int64(row.key.table), at: 4)
        try statement.bind(id: row.key.id, at: 5)
        try statement.bind(integer: checksum, at: 6)
        try statement.bind(integer: row.isExact ? 1 : 0, at: 8)
        try statement.bind(integer: row.createdAt, at: 9)
        try statement.bind(integer: columns, at: 10)
        try statement.run(borrowingBlob: json.span.bytes, at: 7)
    }

    /// The renderer for rows of a schema version.
    func renderer(_ schema: SchemaHistory.Entry) -> RowJSON {
        if let known = renderers[schema.version.ordinal] { return known }
        let renderer = RowJSON(schema.schema)
        renderers[schema.version.ordinal] = renderer
        return renderer
    }

    /// Removes a row's replaced version, which must exist.
    private func removeRow(
        _ key: RowKey, owner: Int64, device: Int64, at timeStamp: TimeStamp, _ state: inout FileState
    ) throws {
        var statement = try connection.statement(
            """
            DELETE FROM stream WHERE owner_no = ?1 AND device_no = ?2 AND time_stamp = ?3 \
            RETURNING owner_no, device_no, time_stamp, table_no, row_id, checksum
            """)
        try statement.bind(integer: owner, at: 1)
        try statement.bind(integer: device, at: 2)
        try statement.bind(integer: timeStamp.rawValue, at: 3)
        guard try statement.step() else {
            throw StreamFailure.damaged("the stream lacks the row \(timeStamp) of owner \(owner)")
        }
        try FileRecords.requireRow(
            statement, owner: owner, device: device, at: timeStamp, table: Int64(key.table), id: key.id)
        state.remove(try statement.integer(at: 5))
        while try statement.step() {}
    }

    private func addTimeEntry(
        owner: Int64, at timeStamp: TimeStamp, device: Int64, _ state: inout FileState
    ) throws {
        let checksum = FileRecords.checksum(ofTimeEntry: owner, timeStamp, device: device)
        state.add(checksum)
        var statement = try connection.statement(
            "INSERT INTO time_index(owner_no, time_stamp, device_no, checksum) VALUES(?1, ?2, ?3, ?4)")
        try statement.bind(integer: owner, at: 1)
        try statement.bind(integer: timeStamp.rawValue, at: 2)
        try statement.bind(integer: device, at: 3)
        try statement.bind(integer: checksum, at: 4)
        try statement.run()
    }

    private func removeTimeEntry(
        owner: Int64, at timeStamp: TimeStamp, device: Int64, _ state: inout FileState
    ) throws {
        var statement = try connection.statement(
            """
            DELETE FROM time_index WHERE owner_no = ?1 AND time_stamp = ?2 \
            RETURNING owner_no, time_stamp, device_no, checksum
            """)
        try statement.bind(integer: owner, at: 1)
        try statement.bind(integer: timeStamp.rawValue, at: 2)
        guard try statement.step() else {
            throw StreamFailure.damaged("the index by time lacks the row \(timeStamp) of owner \(owner)")
        }
        let entry = try FileRecords.timeEntry(statement)
        guard entry.owner == owner, entry.timeStamp == timeStamp, entry.device == device else {
            throw StreamFailure.damaged("the index by time has another row at \(timeStamp) of owner \(owner)")
        }
        state.remove(entry.checksum)
        while try statement.step() {}
    }
}
