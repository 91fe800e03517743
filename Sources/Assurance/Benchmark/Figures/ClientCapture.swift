import LoadTools
import WeirClient

/// What capture costs an app: the same statements on a table that `WeirClient` syncs and on one that it does not.
struct ClientCapture: Figure {
    let name = "capture"
    let title = "an app's writes to a table that WeirClient syncs, without a server"

    func measure(_ bench: Bench) async throws -> FigureResult {
        let rows = bench.scale.pick(200, 100_000, 500_000)
        let commits = bench.scale.pick(20, 3000, 10_000)
        var measures: [Measure] = []
        var pending = 0
        for key in Key.allCases {
            var ratios = (insert: [Double](), update: [Double](), commit: [Double](), trigger: [Double]())
            var folding: [Double] = []
            // The first repetition warms up.
            for number in 0...bench.scale.repetitions {
                // An empty file is an empty database.
                let file = "capture-\(key)-\(number)"
                func times(_ capture: Capture) throws -> Times {
                    let path = try bench.folder.write("", to: "\(file)-\(capture)")
                    return try Self.times(path, key, capture, rows: rows, commits: commits)
                }
                let (plain, trigger, synced) = (try times(.none), try times(.trigger), try times(.weir))
                pending += synced.pending
                ratios.insert.append(synced.insert / plain.insert)
                ratios.update.append(synced.update / plain.update)
                ratios.commit.append(synced.commit / plain.commit)
                ratios.trigger.append(trigger.insert / plain.insert)
                folding.append(Double(2 * rows + commits) / synced.fold)
            }
            measures += [
                Measure("insert_ratio_\(key.rawValue)", Samples(ratios.insert.dropFirst()), "", target: .atMost(2)),
                Measure("insert_trigger_ratio_\(key.rawValue)", Samples(ratios.trigger.dropFirst()), ""),
                Measure("update_ratio_\(key.rawValue)", Samples(ratios.update.dropFirst()), "", target: .atMost(7)),
                Measure("commit_ratio_\(key.rawValue)", Samples(ratios.commit.dropFirst()), "", target: .atMost(2)),
                Measure("folded_per_second_\(key.rawValue)", Samples(folding.dropFirst()), "/s"),
            ]
        }
        let expected = Key.allCases.count * (bench.scale.repetitions + 1) * rows
        return FigureResult(
            measures: measures, checks: [Check(name: "rows pending", expected: expected, found: pending)])
    }

    enum Key: String, CaseIterable {
        /// Random, as text.
        case uuid
        /// The same on a connection with `temp_store = MEMORY`: in a transaction that changes more pages than the cache has,
        /// SQLite copies the pages that a statement with triggers changes to a temporary file.
        case uuidInMemory = "uuid_temp_store_memory"
        /// Growing.
        case integer

        var declaration: String { self == .integer ? "INTEGER PRIMARY KEY" : "TEXT PRIMARY KEY NOT NULL" }
        var tempStore: String { self == .uuidInMemory ? "MEMORY" : "DEFAULT" }

        func value(_ number: Int) -> SQLValue {
            if self == .integer { return .integer(Int64(number)) }
            // Multiplication by an odd number, modulo 2^64, gives each number another one.
            let bits = UInt64(truncatingIfNeeded: number) &* 0x9E37_79B9_7F4A_7C15
            let digits = String(bits, radix: 16)
            let padded = String(repeating: "0", count: 16 - digits.count) + digits
            return .text("\(padded.prefix(8))-\(padded.dropFirst(8).prefix(4))-4\(padded.suffix(3))-8000-000000000000")
        }
    }

    private enum Capture {
        case none
        /// One trigger that appends a row to another table: the least that any capture by triggers costs.
        case trigger
        case weir
    }

    private struct Times {
        /// Seconds.
        var insert = 0.0
        var update = 0.0
        var commit = 0.0
        var fold = 0.0
        var pending = 0
    }

    private static func times(
        _ path: String, _ key: Key, _ capture: Capture, rows: Int, commits: Int
    ) throws -> Times {
        let app = try Database(path: path)
        defer { app.close() }
        // As GRDB's pools have it.
        try app.execute(
            """
            PRAGMA journal_mode = WAL;
            PRAGMA synchronous = NORMAL;
            PRAGMA temp_store = \(key.tempStore);
            CREATE TABLE item (id \(key.declaration), list TEXT, title TEXT, note TEXT, done INTEGER, position REAL,
                created TEXT, updated TEXT);
            CREATE INDEX item_list ON item (list);
            """)
        if capture == .trigger {
            try app.execute(
                """
                CREATE TABLE log (seq INTEGER PRIMARY KEY, id);
                CREATE TRIGGER item_log AFTER INSERT ON item BEGIN INSERT INTO log (id) VALUES (NEW.id); END;
                """)
        }
        let file = capture == .weir ? try ClientFile(path: path, tables: ["item"]) : nil
        defer { file?.database.close() }
        func seconds(_ body: () throws -> Void) throws -> Double {
            try app.run("PRAGMA wal_checkpoint(TRUNCATE)")
            let start = SystemCall.nanoseconds()
            try body()
            return SystemCall.seconds(since: start)
        }
        var times = Times()
        times.insert = try seconds {
            try app.transaction {
                for number in 1...rows {
                    try app.run(
                        "INSERT INTO item VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
                        [
                            key.value(number), .text("list \(number % 50)"), .text("the title of item \(number)"),
                            .text("a note on the item that is somewhat longer than the title of \(number)"),
                            .integer(Int64(number % 2)), .real(Double(number) / 2), .text("2026-01-02 03:04:05.678"),
                        ])
                }
            }
        }
        times.update = try seconds {
            try app.run("UPDATE item SET done = 1 - done, updated = '2026-02-02 03:04:05.678'")
        }
        times.commit = try seconds {
            for number in 1...commits {
                try app.run(
                    "UPDATE item SET title = ?2, updated = '2026-03-02 03:04:05.678' WHERE id = ?1",
                    [key.value(number * 7 % rows + 1), .text("another title \(number)")])
            }
        }
        if let file {
            times.fold = try seconds { try file.foldLogs() }
            times.pending = try file.pendingRows()
        }
        return times
    }
}
