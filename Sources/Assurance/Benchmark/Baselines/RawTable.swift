import LoadTools
import Postgres

/// A session of Postgres that writes the rows of the baselines, by the fastest way that was found.
///
/// Rows in binary format are copied to a temporary table and upserted from there in one statement. With arrays as
/// parameters, as the store writes, Postgres needs a fifth more CPU.
struct RawTable: RawUpsert.Session {
    private let connection: PostgresConnection
    private let upsert: String

    private static func name(in space: ClusterSpace) -> String { "\(space.name).weir_bench_raw" }

    static func create(in space: ClusterSpace) async throws {
        let columns = RawUpsert.columns.map {
            "\($0.name) \($0.postgres.name)" + ($0.postgres == .text ? " COLLATE \"C\"" : "")
        }
        try await LoadThreads.run {
            try space.cluster.session { session in
                try session.execute(
                    """
                    SET client_min_messages = warning;
                    CREATE SCHEMA IF NOT EXISTS \(space.name);
                    DROP TABLE IF EXISTS \(name(in: space));
                    CREATE TABLE \(name(in: space)) (\(columns.joined(separator: ", ")), PRIMARY KEY (sync_id, id))
                        WITH (fillfactor = 90)
                    """)
            }
        }
    }

    static func use<Value>(_ space: ClusterSpace, _ body: (RawTable) throws -> Value) throws -> Value {
        try space.cluster.session { connection in
            let upsert = RawUpsert.upsert(into: name(in: space), "SELECT * FROM pg_temp.copied")
            try connection.execute(
                "CREATE TEMPORARY TABLE copied (LIKE \(name(in: space))) ON COMMIT DELETE ROWS")
            try connection.prepare([upsert])
            return try body(RawTable(connection: connection, upsert: upsert))
        }
    }

    func write(_ rows: ArraySlice<RawUpsert.Row>, firstTimeStamp: Int64) throws {
        let rows = Self.copy(rows, firstTimeStamp: firstTimeStamp)
        try connection.execute("BEGIN")
        try connection.copy("COPY pg_temp.copied FROM STDIN (FORMAT binary)", rows)
        _ = try connection.query(upsert).count
        try connection.execute("COMMIT")
    }

    /// Rows in binary format; timestamps are made up.
    private static func copy(_ rows: ArraySlice<RawUpsert.Row>, firstTimeStamp: Int64) -> [UInt8] {
        var copy = BinaryCopy()
        for (number, entry) in rows.enumerated() {
            let timeStamp = firstTimeStamp + Int64(number)
            copy.beginRow(columns: RawUpsert.columns.count)
            copy.append(bytes: entry.owner.utf8.span)
            copy.append(bytes: entry.row.id.span)
            copy.append(bytes: "k1".utf8.span)
            copy.append(timeStamp)
            copy.append(1 as Int64)
            copy.append(false)
            copy.append(timeStamp)
            copy.append(timeStamp)
            copy.append(bytes: entry.owner.utf8.span)
            copy.append(bytes: "k1".utf8.span)
            copy.append(timeStamp)
            copy.append(true)
            copy.append(timeStamp)
            _ = copy.append(uuid: entry.row.list.span)
            copy.append(bytes: entry.row.title.span)
            copy.append(bytes: entry.row.body.span)
            copy.append(entry.row.isDone)
            copy.append(entry.row.position)
            copy.append(timeStamp)
        }
        return copy.take()
    }
}
