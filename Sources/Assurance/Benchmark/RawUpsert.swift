/// The baseline of rows: written by themselves, where Weir writes them.
enum RawUpsert: Sendable {
    /// To a SQLite file.
    case file(String)
    /// To a table in Postgres.
    case table(RawTable)

    /// Writes what devices send from one batch on, in the order in which it comes; the seconds it took.
    func write(_ devices: Devices, firstBatch: Int, batches: Int) async throws -> Double {
        let rows = try await LoadThreads.run {
            let (owners, batchSize) = (devices.owners, devices.batchSize)
            var sources = owners.indices.map { devices.rows(device: $0, firstBatch: firstBatch) }
            var rows: [(owner: String, row: Workload.Row)] = []
            rows.reserveCapacity(owners.count * batches * batchSize)
            for _ in 0..<batches {
                for owner in owners.indices {
                    for _ in 0..<batchSize { rows.append((owners[owner], sources[owner].next())) }
                }
            }
            return rows
        }
        switch self {
        case .file(let path):
            return try await LoadThreads.run { try RawDatabase.use(path) { try $0.write(rows) } }
        case .table(let table):
            return try await table.write(rows)
        }
    }
}
