import Foundation
import Fuzzing
import Seeded
import Testing
import WeirClient

/// Whatever an app does in SQL, the batches applied to what the server had give the tables as they are.
@Suite struct CapturePropertyTests {
    @Test(arguments: TestLength.seeds(400, short: 60, long: 1500))
    func batchesAppliedToWhatTheServerHadGiveTheTablesAsTheyAre(seed: UInt64) throws {
        var run = try CaptureRun(seed: seed)
        for _ in 0..<12 { try run.round() }
        try run.end()
    }
}

/// An app that writes at random, and a server that gets its batches.
private struct CaptureRun {
    let app: SyncedApp
    var sql: RandomSQL
    var server = ModelServer(references: RandomSQL.references)
    /// The batch without outcome.
    var inFlight: Batch?
    var timeStamp: Int64 = 0
    /// For the report of a failing seed.
    var statements: [String] = []

    init(seed: UInt64) throws {
        sql = RandomSQL(random: SeededRandom(seed: seed), changesKeys: seed % 2 == 0)
        app = try SyncedApp(RandomSQL.schema, server: RandomSQL.server)
        try open()
        if seed % 3 == 0 { try app.run(RandomSQL.triggers) }
    }

    private func open() throws { try app.open("item", "list", "note", "node") }

    mutating func round() throws {
        let before = statements.count
        try write(count: Int.random(in: 1...12, using: &sql.random))
        if sql.random.chance(10) { try open() }
        if inFlight == nil {
            try expectValuesBefore()
            inFlight = try app.freeze(changes: sql.pick([1, 3, 1000]), bytes: sql.pick([400, 1 << 20])).batch
        } else if sql.random.chance(70) {
            try acknowledge()
        }
        if sql.random.chance(30) { try end(since: before) }
    }

    /// Sends what is pending and compares.
    ///
    /// - Parameter first: the first statement that a failure shows.
    mutating func end(since first: Int = 0) throws {
        try drain()
        try expectEqual(statements[first...].joined(separator: ";\n"))
    }

    // MARK: The app

    private mutating func write(count: Int) throws {
        let isTransaction = sql.random.chance(40)
        if isTransaction { try run("BEGIN") }
        for _ in 0..<count {
            try run(sql.statement())
            guard isTransaction, sql.random.chance(30) else { continue }
            try run(sql.pick(["SAVEPOINT s", "ROLLBACK TO s", "RELEASE s"]))
        }
        // Rolled back already after OR ROLLBACK, and if a deferred foreign key is violated, not committed.
        if isTransaction { try run(sql.pick(["COMMIT", "COMMIT", "ROLLBACK"])) }
        try run("ROLLBACK")
    }

    private mutating func run(_ statement: String) throws {
        statements.append(statement)
        do {
            try app.run(statement)
        } catch WeirError.database(let code, let message, _)
            where [19, 20].contains(code & 0xff) || message.contains("no such savepoint")
            || message.contains("no transaction is active")
        {
            // A constraint or a NULL as rowid, or a transaction that has ended already: the app's own mistakes.
        }
    }

    // MARK: The server

    private mutating func acknowledge() throws {
        guard let batch = inFlight else { return }
        let first = timeStamp + 1
        for json in batch.changeTexts {
            timeStamp += 1
            try server.apply(json, timeStamp: timeStamp, isOrdered: !sql.changesKeys && isEnforced)
        }
        try app.opened.acknowledge(batch.number, timeStamps: Array(first..<(timeStamp + 1)))
        inFlight = nil
    }

    /// Foreign keys that the app has turned off once need not hold.
    private var isEnforced: Bool { !statements.contains("PRAGMA foreign_keys = false") }

    private mutating func drain() throws {
        repeat {
            try acknowledge()
            inFlight = try app.freeze(changes: 5).batch
        } while inFlight != nil
    }

    // MARK: What must hold

    private func expectEqual(_ context: String) throws {
        #expect(try app.opened.pendingRows() == 0)
        for table in app.opened.tables {
            let rows = try rows(table)
            #expect(rows == server.live(table.name), "\(table.name) after\n\(context)")
        }
    }

    /// The values before that an edit has are those that the server has.
    private func expectValuesBefore() throws {
        try app.opened.foldLogs()
        for table in app.opened.tables where !table.columns.isEmpty {
            let live = server.live(table.name)
            for column in table.columns {
                let known = try app.database.map(
                    """
                    SELECT e.id, e.c\(column.number) FROM \(table.edit) AS e JOIN \(table.state) AS r ON r.id = e.id
                    WHERE NOT r.deleted AND (e.v0 = -1 OR e.v0 & \(1 << (column.number - 1)))
                    """
                ) { ($0.string(at: 0), $0.value(at: 1)) }
                for (id, value) in known {
                    let json = Self.json(value, isJSON: column.name == "any", isReference: column.name == "list")
                    #expect(live[id]?[column.name] == json, "the value of \(column.name) before the edit of \(id)")
                }
            }
        }
    }

    private func rows(_ table: CapturedTable) throws -> [String: [String: String]] {
        let columns = table.columns.map(\.name)
        let rows = try app.database.map(
            "SELECT id, \(columns.map(quoted).joined(separator: ", ")) FROM \(table.name) WHERE id IS NOT NULL"
        ) { row in
            (
                row.string(at: 0),
                columns.enumerated().map { index, name in
                    (name, Self.json(row.value(at: index + 1), isJSON: name == "any", isReference: name == "list"))
                }
            )
        }
        return Dictionary(uniqueKeysWithValues: rows.map { ($0, Dictionary(uniqueKeysWithValues: $1)) })
    }

    /// A value as the server has it.
    private static func json(_ value: SQLValue, isJSON: Bool, isReference: Bool) -> String {
        switch value {
        case .null: "null"
        case .integer(let number): isReference ? "\"\(number)\"" : "\(number)"
        case .real(let number): number == number.rounded() ? "\(Int(number))" : "\(number)"
        case .text(let bytes), .blob(let bytes):
            isJSON ? String(decoding: bytes, as: UTF8.self) : "\"" + String(decoding: bytes, as: UTF8.self) + "\""
        }
    }
}
