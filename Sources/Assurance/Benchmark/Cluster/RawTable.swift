import Postgres

/// The baseline of the tables: the same rows to Postgres alone, by the fastest way that was found.
///
/// Rows in binary format are copied to a temporary table and brought over from there in one statement. With arrays as
/// parameters, as the store writes, it takes Postgres a fifth more CPU.
struct RawTable: Sendable {
    /// Sessions that write at a time: one is sent rows while the other's are written.
    private static let sessions = 2

    /// Fewer make every row dearer, more of them make none cheaper.
    private static let rowsOfTransaction = 20_000

    private let cluster: Cluster
    private let name: String

    /// Makes the table, empty.
    init(in space: ClusterSpace) async throws {
        cluster = space.cluster
        let name = "\(space.name).weir_bench_raw"
        self.name = name
        let columns = Self.columns.map { "\($0.name) \($0.type.name)" + ($0.type == .text ? " COLLATE \"C\"" : "") }
        try await LoadThreads.run {
            try space.cluster.session { session in
                try session.execute(
                    """
                    SET client_min_messages = warning;
                    CREATE SCHEMA IF NOT EXISTS \(space.name);
                    DROP TABLE IF EXISTS \(name);
                    CREATE TABLE \(name) (\(columns.joined(separator: ", ")), PRIMARY KEY (sync_id, id))
                        WITH (fillfactor = 90)
                    """)
            }
        }
    }

    /// As the store has them.
    private static let columns: [(name: String, type: PostgresType)] = [
        ("sync_id", .text), ("id", .text), ("knowledge_id", .text), ("time_stamp", .bigint), ("version", .bigint),
        ("deleted", .boolean), ("created_at", .timestamptz), ("updated_at", .timestamptz), ("writer_sync_id", .text),
        ("writer_knowledge_id", .text), ("writer_batch", .bigint), ("exact", .boolean), ("others_time_stamp", .bigint),
        ("list", .uuid), ("title", .text), ("body", .text), ("done", .boolean), ("position", .double),
        ("due", .timestamptz),
    ]

    private var upsert: String {
        let updates = Self.columns.dropFirst(2).map { "\($0.name) = excluded.\($0.name)" }
        return """
            INSERT INTO \(name) SELECT * FROM pg_temp.copied
            ON CONFLICT (sync_id, id) DO UPDATE SET \(updates.joined(separator: ", "))
            """
    }

    /// Writes the rows of owners, each owner's by one session; the seconds it took.
    func write(_ rows: [(owner: String, row: Workload.Row)]) async throws -> Double {
        let owners = Set(rows.map(\.owner)).sorted()
        let shares = (0..<Self.sessions).map { session in
            let mine = Set(owners.enumerated().filter { $0.offset % Self.sessions == session }.map(\.element))
            return rows.filter { mine.contains($0.owner) }
        }
        let times = try await LoadThreads.run(shares.count) { [self] session in
            try cluster.session { connection in
                try connection.execute(
                    "CREATE TEMPORARY TABLE copied (LIKE \(name)) ON COMMIT DELETE ROWS")
                try connection.prepare(upsert)
                let start = SystemCall.nanoseconds()
                for first in stride(from: 0, to: shares[session].count, by: Self.rowsOfTransaction) {
                    let end = min(first + Self.rowsOfTransaction, shares[session].count)
                    let rows = Self.copy(shares[session][first..<end], firstTimeStamp: Int64(first))
                    try connection.execute("BEGIN")
                    try connection.copy("COPY pg_temp.copied FROM STDIN (FORMAT binary)", rows)
                    _ = try connection.query(upsert).count
                    try connection.execute("COMMIT")
                }
                return (start: start, end: SystemCall.nanoseconds())
            }
        }
        return Double((times.map(\.end).max() ?? 0) - (times.map(\.start).min() ?? 0)) / 1e9
    }

    /// Rows in the order of the columns; moments are made up.
    private static func copy(
        _ rows: ArraySlice<(owner: String, row: Workload.Row)>, firstTimeStamp: Int64
    ) -> [UInt8] {
        var copy = BinaryCopy()
        for (number, entry) in rows.enumerated() {
            let timeStamp = firstTimeStamp + Int64(number)
            copy.beginRow(columns: columns.count)
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
