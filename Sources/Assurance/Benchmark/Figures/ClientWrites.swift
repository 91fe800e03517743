import LoadTools
import WeirClient

/// How long an app's writes wait while the client library writes what other devices have changed.
struct ClientWrites: Figure {
    let name = "app-writes"
    let title = "an app's commits of one row while a device that was away pulls and applies an account's rows"

    func measure(_ bench: Bench) async throws -> FigureResult {
        let batches = bench.scale.pick(2, 200, 500)
        let rows = batches * 1000
        let account = Owners.spread(1)[0]
        return try await bench.withServer(name) { server in
            // The device's first sync has ended: later ones have pauses whether the app writes or not.
            let path = try bench.folder.write("", to: "app-writes-file")
            let weir = try await ClientFirstSync.device(path, account, server, running: Self.ownRow)
            try await weir.sync()
            var devices = Devices(owners: [account], batchSize: 1000, ids: .random)
            try await bench.showing("\(name): loading", total: rows, unit: "changes") { bar in
                let (plans, _) = try await devices.plan(batches: batches)
                _ = try await Upload.run(plans, to: server, bar)
            }
            _ = try await Drain.count(of: account, on: server)
            let alone = try await LoadThreads.run { try Self.write(to: path) { $0.count < 1000 } }
            let times = try await Self.times(of: weir, path, rows)
            // And those of another device during its first sync, which has pauses once the app has written.
            let newPath = try bench.folder.write("", to: "app-writes-new-file")
            let new = try await ClientFirstSync.device(newPath, account, server, running: Self.ownRow)
            let first = try await Self.times(of: new, newPath, rows)
            let found = try [path, newPath].map(ClientFirstSync.count)
            return FigureResult(
                measures: [
                    Measure("write_p50", Samples(times).median, "ms"),
                    Measure("write_p99", Samples(times).quantile(0.99), "ms", target: .atMost(50), aim: 20),
                    Measure("write_highest", Samples(times).high, "ms"),
                    Measure("first_sync_p50", Samples(first).median, "ms"),
                    Measure("first_sync_p99", Samples(first).quantile(0.99), "ms"),
                    Measure("first_sync_highest", Samples(first).high, "ms"),
                    Measure("alone_p50", Samples(alone).median, "ms"),
                    Measure("alone_p99", Samples(alone).quantile(0.99), "ms"),
                    Measure("writes", Double(times.count)),
                ],
                checks: [Check(name: "rows", expected: 2 * (rows + 1), found: found.reduce(0, +))])
        }
    }

    /// A row that only this device writes.
    private static let ownRow =
        "INSERT INTO note VALUES ('own', '00000000-0000-4000-8000-000000000000', 't', NULL, 0, 0, NULL)"

    /// The milliseconds that commits took during a session which writes so many rows.
    private static func times(of weir: Weir, _ path: String, _ rows: Int) async throws -> [Double] {
        // A session lasts as long as there is something to send, so the writes end with the rows.
        async let beside = LoadThreads.run { try write(to: path) { $0.newest <= rows } }
        try await weir.sync()
        let times = try await beside
        await weir.close()
        return times
    }

    /// Commits an update of one row every 5 ms.
    ///
    /// - Parameter continues: by the number of commits, and that of the row that was inserted last.
    /// - Returns: the milliseconds that each commit took.
    private static func write(
        to path: String, while continues: ((count: Int, newest: Int)) -> Bool
    ) throws -> [Double] {
        let app = try Database(path: path)
        defer { app.close() }
        try app.execute("PRAGMA synchronous = NORMAL")
        var times: [Double] = []
        repeat {
            let start = SystemCall.nanoseconds()
            try app.run("UPDATE note SET title = ?1 WHERE id = 'own'", [.text("title \(times.count)")])
            times.append(SystemCall.seconds(since: start) * 1000)
            SystemCall.wait(until: start + 5_000_000)
        } while continues((times.count, Int(try app.integer("SELECT max(rowid) FROM note") ?? 0)))
        return times
    }
}
