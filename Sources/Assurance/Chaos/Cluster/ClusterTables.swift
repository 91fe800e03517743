import LoadTools
import Postgres
import SyncModel

/// What Postgres holds, read with plain SQL.
struct ClusterTables: Sendable {
    let connection: String
    let schema: Schema

    /// By owner, all rows, deleted ones included.
    func rows() async throws -> [SyncID: [OrderedRow]] {
        try await LoadThreads.run { [self] in
            try session { session in
                var rows: [SyncID: [OrderedRow]] = [:]
                for (index, table) in schema.tables.enumerated() {
                    let columns = table.columns.map(ChaosSchema.json).joined(separator: ", ")
                    let result = try session.queryOnce(
                        """
                        SELECT sync_id, id, knowledge_id, time_stamp::text, version::text, deleted::text,
                            (extract(epoch from updated_at) * 1000000)::bigint::text, \(columns)
                        FROM weir.\(table.name)
                        """)
                    for row in 0..<result.count {
                        let fields = try result.columns.map { try result.text(row, $0) }
                        let read = try Self.row(fields, index)
                        rows[read.key.owner, default: []].append(read)
                    }
                }
                return rows
            }
        }
    }

    /// By owner, the newest timeStamp of its rows.
    func heads() async throws -> [SyncID: Int64] {
        try await LoadThreads.run { [self] in
            try session { session in
                let all = schema.tables.map { "SELECT sync_id, time_stamp FROM weir.\($0.name)" }
                    .joined(separator: " UNION ALL ")
                let result = try session.queryOnce(
                    "SELECT sync_id, max(time_stamp)::text FROM (\(all)) AS rows GROUP BY sync_id")
                var heads: [SyncID: Int64] = [:]
                for row in 0..<result.count {
                    heads[SyncID(unchecked: try result.text(row, 0))] = Int64(try result.text(row, 1))
                }
                return heads
            }
        }
    }

    private func session<Value>(_ body: (PostgresConnection) throws -> Value) throws -> Value {
        let connection = try PostgresConnection(ConnectionParameters(connection), timeout: .seconds(30))
        defer { connection.close() }
        return try body(connection)
    }

    /// - Parameter fields: as selected by ``rows()``.
    private static func row(_ fields: [String], _ table: Int) throws -> OrderedRow {
        guard let number = Int64(fields[3]), let timeStamp = TimeStamp(rawValue: number),
            let version = Int64(fields[4]), let updatedAt = Int64(fields[6])
        else { throw LoadFailure("a row of Postgres cannot be read: \(fields)") }
        var values = RowValues()
        for value in fields[7...] { values.append(Array(value.utf8)) }
        let creator = KnowledgeID(unchecked: fields[2])
        return OrderedRow(
            key: RowKey(table: table, owner: SyncID(unchecked: fields[0]), id: RowID(unchecked: fields[1])),
            knowledgeID: creator, timeStamp: timeStamp, version: version, isDeleted: fields[5] == "true", createdAt: 0,
            updatedAt: updatedAt, writer: Device(caller: SyncID(unchecked: fields[0]), knowledgeID: creator),
            writerBatch: nil, isExact: false, othersTimeStamp: .zero, values: values)
    }
}
