import Foundation
import LoadTools
import SQLite
import WeirClient

/// What applying pulled pages costs a device, against the same rows written by one prepared upsert without `WeirClient`.
struct ClientApply: Figure {
    let name = "apply"
    let title = "pages of a pull, read and applied by WeirClient, without a server"

    func measure(_ bench: Bench) async throws -> FigureResult {
        let rows = bench.scale.pick(2000, 100_000, 500_000)
        var measures: [Measure] = []
        var applied = 0
        let keys: [ClientCapture.Key] = [.uuid, .integer]
        for key in keys {
            let passes = (1...2).map { pass in Pass(key, rows: rows, first: (pass - 1) * rows + 1, number: pass) }
            var speed: [[Double]] = [[], []]
            var ratios: [[Double]] = [[], []]
            // The first repetition warms up.
            for number in 0...bench.scale.repetitions {
                // An empty file is an empty database.
                let file = "apply-\(key)-\(number)"
                let raw = try Self.rawTimes(try bench.folder.write("", to: file + "-raw"), key, passes)
                let synced = try Self.times(try bench.folder.write("", to: file + "-synced"), key, passes)
                applied += synced.rows
                if number == 0 { continue }
                for pass in passes.indices {
                    speed[pass].append(Double(rows) / synced.seconds[pass])
                    ratios[pass].append(raw[pass] / synced.seconds[pass])
                }
            }
            for (pass, label) in ["new", "again"].enumerated() {
                measures += [
                    Measure("\(label)_rows_per_second_\(key.rawValue)", Samples(speed[pass]), "/s"),
                    Measure(
                        "\(label)_ratio_\(key.rawValue)", Samples(ratios[pass]), "", target: .atLeast(0.4), aim: 0.5),
                ]
            }
        }
        let expected = keys.count * (bench.scale.repetitions + 1) * rows
        return FigureResult(
            measures: measures, checks: [Check(name: "rows applied", expected: expected, found: applied)])
    }

    /// As many rows as a pull returns by default.
    private static let page = 1000

    /// Every row once, in a version of its own.
    private struct Pass {
        struct Row {
            let key: SQLValue
            let list: String
            let title: String
            let note: String
            let isDone: Bool
            let position: Double
            let time: String
        }

        let isFirst: Bool
        let rows: [Row]
        /// The bodies of the server's answers.
        let answers: [[UInt8]]

        init(_ key: ClientCapture.Key, rows count: Int, first: Int, number: Int) {
            let rows = (1...count).map { row in
                Row(
                    key: key.value(row), list: "list \(row % 50)", title: "the title of item \(row), version \(number)",
                    note: "a note on the item that is somewhat longer than the title of \(row)",
                    isDone: row % 2 == 0, position: Double(row) + 0.5, time: "2026-01-0\(number)T03:04:05.678000Z")
            }
            self.rows = rows
            isFirst = number == 1
            answers = stride(from: 0, to: count, by: ClientApply.page).map { start in
                let changes = rows[start..<min(start + ClientApply.page, count)].enumerated().map { index, row in
                    Self.json(row, timeStamp: first + start + index, version: number)
                }
                let text = """
                    {"syncId":"abc","epoch":"e1","schemaVersion":"s1","owners":[{"syncId":"abc","access":"write"}],\
                    "changes":[\(changes.joined(separator: ","))],"knowledge":[{"syncId":"abc","knowledgeId":"k2",\
                    "lastTimeStamp":\(first + start + changes.count - 1)}],"hasMore":true,"revoked":[],"resync":[]}
                    """
                return Array(text.utf8)
            }
        }

        private static func json(_ row: Row, timeStamp: Int, version: Int) -> String {
            let id = row.key.string ?? "\(row.key)"
            return """
                {"table":"item","id":"\(id)","syncId":"abc","knowledgeId":"k2","timeStamp":\(timeStamp),"version":\(version),\
                "deleted":false,"values":{"list":"\(row.list)","title":"\(row.title)","note":"\(row.note)",\
                "done":\(row.isDone),"position":\(row.position),"created":"\(row.time)","updated":"\(row.time)"},\
                "writer":{"syncId":"abc","knowledgeId":"k2"}}
                """
        }
    }

    /// As GRDB's pools have it.
    private static func tables(_ key: ClientCapture.Key) -> String {
        """
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = NORMAL;
        CREATE TABLE item (id \(key.declaration), list TEXT, title TEXT, note TEXT, done INTEGER, position REAL,
            created TEXT, updated TEXT);
        CREATE INDEX item_list ON item (list);
        """
    }

    private static let schema = """
        {"epoch":"e1","schemaVersion":"s1","tables":[{"name":"item","policy":"lastSyncWins","rank":0,"columns":[\
        {"name":"list","type":"text"},{"name":"title","type":"text"},{"name":"note","type":"text"},\
        {"name":"done","type":"boolean"},{"name":"position","type":"real"},\
        {"name":"created","type":"timestamp"},{"name":"updated","type":"timestamp"}]}]}
        """

    // MARK: Times

    /// - Returns: the seconds of each pass, and how many rows the table has in their newest version afterwards.
    private static func times(
        _ path: String, _ key: ClientCapture.Key, _ passes: [Pass]
    ) throws -> (seconds: [Double], rows: Int) {
        let app = try Database(path: path)
        defer { app.close() }
        try app.execute(tables(key))
        let file = try ClientFile(path: path, tables: ["item"])
        defer { file.database.close() }
        try file.database.execute("PRAGMA synchronous = NORMAL")
        let schema = try ServerSchema(answer: Array(schema.utf8))
        let seconds = try passes.map { pass in
            try app.run("PRAGMA wal_checkpoint(TRUNCATE)")
            // As a session has it: the first pass is a first sync.
            try file.database.setCheckpointDistance(pass.isFirst ? .long : .short)
            let start = SystemCall.nanoseconds()
            for body in pass.answers {
                let answer = try SyncAnswer(json: body)
                var steps = AnswerSteps(answer, try Applying(file, schema, account: answer.syncID))
                while try steps.next() {}
            }
            return SystemCall.seconds(since: start)
        }
        let newest = try app.integer(
            "SELECT count(*) FROM item JOIN weir_row_1 AS r ON r.id = item.id WHERE title LIKE '% version 2' AND NOT r.deleted"
        )
        return (seconds, Int(newest ?? 0))
    }

    /// The same rows in transactions of the same size, each row by one statement that is prepared once.
    private static func rawTimes(_ path: String, _ key: ClientCapture.Key, _ passes: [Pass]) throws -> [Double] {
        let app = try Database(path: path)
        try app.execute(tables(key))
        app.close()
        let connection = try Connection(path: path, access: .readWriteCreate(WriteOptions(synchronous: .normal)))
        let seconds = try passes.map { pass in
            try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return try PreparedUpserts.seconds(upsert, pass.rows, on: connection, write)
        }
        try connection.close()
        return seconds
    }

    private static let upsert = """
        INSERT INTO item VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7) ON CONFLICT (id) DO UPDATE SET
        list = excluded.list, title = excluded.title, note = excluded.note, done = excluded.done,
        position = excluded.position, created = excluded.created, updated = excluded.updated
        """

    private static func write(_ row: Pass.Row, with statement: inout Statement) throws {
        if case .integer(let number) = row.key {
            try statement.bind(integer: number, at: 1)
        } else {
            try statement.bind(text: row.key.string ?? "", at: 1)
        }
        try statement.bind(text: row.list, at: 2)
        try statement.bind(text: row.title, at: 3)
        try statement.bind(text: row.note, at: 4)
        try statement.bind(integer: row.isDone ? 1 : 0, at: 5)
        try statement.bind(double: row.position, at: 6)
        try statement.bind(text: row.time, at: 7)
        try statement.run()
    }
}
