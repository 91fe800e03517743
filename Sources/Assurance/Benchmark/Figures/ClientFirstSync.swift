import Foundation
import LoadTools
import SQLite
import WeirClient

/// How fast a new device of the client library has all rows of its account in the app's table.
struct ClientFirstSync: Figure {
    let name = "first-sync"
    let title = "a new device pulls an account's rows over loopback and writes them into the app's table"

    func measure(_ bench: Bench) async throws -> FigureResult {
        let batches = bench.scale.pick(2, 100, 500)
        let rows = batches * 1000
        return try await bench.withServer(name) { server in
            var measures: [Measure] = []
            var checks: [Check] = []
            let accounts = zip(Owners.spread(2), [("growing", Workload.IDs.growing), ("random", .random)])
            for (account, (label, ids)) in accounts {
                var devices = Devices(owners: [account], batchSize: 1000, ids: ids)
                try await bench.showing("\(name): loading", total: rows, unit: "changes") { bar in
                    let (plans, _) = try await devices.plan(batches: batches)
                    _ = try await Upload.run(plans, to: server, bar)
                }
                // The rows are in the stream.
                _ = try await Drain.count(of: account, on: server)
                var rates: [Double] = []
                var ratios: [Double] = []
                // The first repetition warms up.
                for number in 0...bench.scale.repetitions {
                    let path = try bench.folder.write("", to: "first-sync-\(label)-\(number)")
                    let (seconds, found) = try await sync(path, account, server)
                    checks.append(Check(name: "rows with \(label) ids", expected: rows, found: found))
                    let raw = try rawTime(
                        of: path, to: try bench.folder.write("", to: "first-sync-\(label)-\(number)-raw"))
                    if number == 0 { continue }
                    rates.append(Double(rows) / seconds)
                    ratios.append(raw / seconds)
                }
                let target: Measure.Target? = ids == .growing ? .atLeast(60_000) : nil
                measures.append(Measure("rows_per_second_\(label)_ids", Samples(rates), "/s", target: target))
                measures.append(Measure("raw_ratio_\(label)_ids", Samples(ratios), "", target: .atLeast(0.4), aim: 0.5))
            }
            return FigureResult(measures: measures, checks: checks)
        }
    }

    private static let table = """
        PRAGMA journal_mode = WAL;
        CREATE TABLE note (id TEXT PRIMARY KEY NOT NULL, list TEXT NOT NULL, title TEXT NOT NULL, body TEXT,
            done INTEGER NOT NULL, position REAL NOT NULL, due TEXT);
        """

    /// A new device, whose file has the table.
    ///
    /// - Parameter sql: what the app runs before Weir opens the file.
    static func device(
        _ path: String, _ account: String, _ server: ServerProcess, running sql: String = ""
    ) async throws -> Weir {
        let app = try Database(path: path)
        try app.execute(table + sql)
        app.close()
        guard let url = URL(string: "http://127.0.0.1:\(server.port)/") else {
            preconditionFailure("a port is a number")
        }
        let weir = try await Weir.open(URL(fileURLWithPath: path), tables: ["note"])
        try await weir.attach(account, server: url)
        return weir
    }

    /// - Returns: how long the first sync took, and how many rows the table has then.
    private func sync(_ path: String, _ account: String, _ server: ServerProcess) async throws -> (Double, Int) {
        let weir = try await Self.device(path, account, server)
        let start = SystemCall.nanoseconds()
        try await weir.sync()
        let seconds = SystemCall.seconds(since: start)
        await weir.close()
        return (seconds, try Self.count(in: path))
    }

    /// How many rows a device's file has.
    static func count(in path: String) throws -> Int {
        let synced = try Database(path: path)
        defer { synced.close() }
        return Int(try synced.integer("SELECT count(*) FROM note") ?? 0)
    }

    /// The baseline: the seconds in which one prepared upsert writes the same rows in the order in which they came, without a server.
    private func rawTime(of synced: String, to path: String) throws -> Double {
        let source = try Database(path: synced)
        let rows = try source.map("SELECT id, list, title, body, done, position, due FROM note ORDER BY rowid") { row in
            let texts = [0, 1, 2, 3, 6].map { row.isNull(at: $0) ? nil : row.string(at: $0) }
            guard case .real(let position) = row.value(at: 5) else {
                preconditionFailure("the column is REAL NOT NULL")
            }
            return (texts: texts, done: row.integer(at: 4), position: position)
        }
        source.close()
        let app = try Database(path: path)
        try app.execute(Self.table)
        app.close()
        // Commits wait for the disk as those of a connection with SQLite's defaults.
        let connection = try Connection(path: path, access: .readWriteCreate(WriteOptions(synchronous: .full)))
        let upsert = """
            INSERT INTO note (id, list, title, body, due, done, position) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            ON CONFLICT (id) DO UPDATE SET list = excluded.list, title = excluded.title, body = excluded.body,
            due = excluded.due, done = excluded.done, position = excluded.position
            """
        let seconds = try PreparedUpserts.seconds(upsert, rows, on: connection) { row, statement in
            for (index, text) in row.texts.enumerated() {
                if let text {
                    try statement.bind(text: text, at: index + 1)
                } else {
                    try statement.bindNull(at: index + 1)
                }
            }
            try statement.bind(integer: row.done, at: 6)
            try statement.bind(double: row.position, at: 7)
            try statement.run()
        }
        try connection.close()
        return seconds
    }
}
