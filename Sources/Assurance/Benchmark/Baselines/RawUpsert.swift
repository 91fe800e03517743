import LoadTools
import Postgres

/// The baseline of rows: the same rows written to one table with the columns of the store's, in SQLite or in Postgres.
enum RawUpsert: Sendable {
    case file(String)
    /// In a table of Postgres that is made first.
    case table(ClusterSpace)

    struct Row: Sendable {
        let owner: String
        let row: Workload.Row
    }

    /// A session that writes rows; used by one thread.
    protocol Session {
        /// Writes rows in one transaction; their timeStamps count up from `firstTimeStamp`.
        func write(_ rows: ArraySlice<Row>, firstTimeStamp: Int64) throws
    }

    /// The columns of the store's table, with their types in SQLite and in Postgres.
    static let columns: [(name: String, sqlite: String, postgres: PostgresType)] = [
        ("sync_id", "TEXT NOT NULL", .text), ("id", "TEXT NOT NULL", .text), ("knowledge_id", "TEXT NOT NULL", .text),
        ("time_stamp", "INTEGER NOT NULL", .bigint), ("version", "INTEGER NOT NULL", .bigint),
        ("deleted", "INTEGER NOT NULL", .boolean), ("created_at", "INTEGER NOT NULL", .timestamptz),
        ("updated_at", "INTEGER NOT NULL", .timestamptz), ("writer_sync_id", "TEXT NOT NULL", .text),
        ("writer_knowledge_id", "TEXT NOT NULL", .text), ("writer_batch", "INTEGER", .bigint),
        ("exact", "INTEGER NOT NULL", .boolean), ("others_time_stamp", "INTEGER NOT NULL", .bigint),
        ("list", "TEXT NOT NULL", .uuid), ("title", "TEXT NOT NULL", .text), ("body", "TEXT", .text),
        ("done", "INTEGER NOT NULL", .boolean), ("position", "REAL NOT NULL", .double), ("due", "TEXT", .timestamptz),
    ]

    /// The statement that inserts the rows of a source (`VALUES …` or `SELECT …`) or updates those that exist.
    static func upsert(into table: String, _ source: String) -> String {
        let updates = columns.dropFirst(2).map { "\($0.name) = excluded.\($0.name)" }
        return "INSERT INTO \(table) \(source) ON CONFLICT (sync_id, id) DO UPDATE SET "
            + updates.joined(separator: ", ")
    }

    /// How many sessions write at the same time, and how many rows each writes in a transaction.
    private var shape: (sessions: Int, rowsOfTransaction: Int) {
        switch self {
        // About as many as the store joins under load.
        case .file: (1, 1600)
        // One session sends rows while Postgres writes the other's. Fewer rows make each dearer, more make none cheaper.
        case .table: (2, 20_000)
        }
    }

    /// Makes the empty table; a file has one as soon as it is opened.
    func prepare() async throws {
        if case .table(let space) = self { try await RawTable.create(in: space) }
    }

    /// Writes what devices upload from one batch on, in the order of arrival; returns the seconds it took.
    func write(_ devices: Devices, firstBatch: Int, batches: Int) async throws -> Double {
        try await write(
            LoadThreads.run {
                var sources = devices.owners.indices.map { devices.rows(device: $0, firstBatch: firstBatch) }
                var rows: [Row] = []
                rows.reserveCapacity(devices.owners.count * batches * devices.batchSize)
                for _ in 0..<batches {
                    for (index, owner) in devices.owners.enumerated() {
                        for _ in 0..<devices.batchSize { rows.append(Row(owner: owner, row: sources[index].next())) }
                    }
                }
                return rows
            })
    }

    /// Writes rows, each owner's in one session; returns the seconds it took.
    func write(_ rows: [Row]) async throws -> Double {
        let (sessions, rowsOfTransaction) = shape
        var session: [String: Int] = [:]
        for owner in Set(rows.map(\.owner)).sorted() { session[owner] = session.count % sessions }
        let shares = (0..<sessions).map { number in rows.filter { session[$0.owner] == number } }
        return try await LoadThreads.run(sessions) { [self] number in
            let share = shares[number]
            return try withSession { session in
                let start = SystemCall.nanoseconds()
                for first in stride(from: 0, to: share.count, by: rowsOfTransaction) {
                    let end = min(first + rowsOfTransaction, share.count)
                    try session.write(share[first..<end], firstTimeStamp: Int64(first))
                }
                return TimeSpan(start: start, end: SystemCall.nanoseconds())
            }
        }.seconds
    }

    private func withSession<Value>(_ body: (any Session) throws -> Value) throws -> Value {
        switch self {
        case .file(let path): try RawDatabase.use(path, body)
        case .table(let space): try RawTable.use(space, body)
        }
    }
}
