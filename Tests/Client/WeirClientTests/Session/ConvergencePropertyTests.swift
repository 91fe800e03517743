import Foundation
import Fuzzing
import Seeded
import Synchronization
import Testing
import WeirClient

/// Devices that write at random SQL, over a network with faults, converge to the server, and lose no edit but by its policy.
@Suite struct ConvergencePropertyTests {
    private static let sql = """
        CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT);
        CREATE TABLE item (
            id INTEGER PRIMARY KEY, title TEXT, note, list TEXT REFERENCES list (id) ON DELETE CASCADE);
        CREATE TABLE pic (id BLOB PRIMARY KEY NOT NULL, name TEXT, taken DATETIME) WITHOUT ROWID;
        """
    private static let tables = [
        "list": ["name": "text"], "item": ["title": "text", "note": "text", "list": "text"],
        "pic": ["name": "text", "taken": "timestamp"],
    ]
    private static let queries = [
        "SELECT 'list ' || id || ' ' || ifnull(name, '-') FROM list AS t WHERE \(isStored(1)) ORDER BY id",
        "SELECT 'item ' || id || ' ' || ifnull(title, '-') || ' ' || ifnull(note, '-') || ' ' || ifnull(list, '-') "
            + "FROM item AS t WHERE \(isStored(2)) ORDER BY id",
        "SELECT 'pic ' || hex(id) || ' ' || ifnull(name, '-') || ' ' || ifnull(taken, '-') FROM pic AS t "
            + "WHERE \(isStored(3)) ORDER BY id",
    ]

    /// Whether the server has a row `t` of the table with this number.
    private static func isStored(_ table: Int) -> String {
        "EXISTS (SELECT 1 FROM weir_row_\(table) AS r WHERE r.id = t.id)"
    }

    /// A device and its random choices.
    private final class Writer {
        let device: Device
        let number: Int
        var random: SeededRandom

        init(_ number: Int, seed: UInt64) async throws {
            self.number = number
            random = SeededRandom(seed: seed &* 1000 &+ UInt64(number))
            device = try await Device(ConvergencePropertyTests.sql, tables: ["list", "item", "pic"])
            // As apps have it. Weir's own connection enforces none.
            if number > 0 { try device.run("PRAGMA foreign_keys = ON") }
        }

        /// The rows that the server has.
        func rows() throws -> [String] { try ConvergencePropertyTests.queries.flatMap { try device.rows($0) } }

        /// Rows that the server does not have, and that no kept edit names: the insertion of a row under a new key is aborted where the
        /// deletion under the old one is a conflict, and stays in the table.
        func unexplained() throws -> [String] {
            try ["list", "item", "pic"].enumerated().flatMap {
                try device.rows(
                    """
                    SELECT '\($1) ' || hex(id) FROM \($1) AS t WHERE NOT \(ConvergencePropertyTests.isStored($0 + 1))
                    AND NOT EXISTS (SELECT 1 FROM weir_aside AS k WHERE k.name = '\($1)' AND k.id = t.id)
                    """)
            }
        }

        /// Those that no other device writes.
        func own() throws -> [String] {
            try device.rows(
                "SELECT id || ' ' || ifnull(name, '-') FROM list WHERE id LIKE 'own\(number)-%' ORDER BY id")
        }

        /// What is known of each row: equal on all devices afterwards.
        func states() throws -> [String] {
            try (1...3).flatMap {
                try device.rows(
                    "SELECT '\($0) ' || hex(id) || ' ' || time_stamp || ' ' || deleted FROM weir_row_\($0) ORDER BY id")
            }
        }

        func write() throws {
            let text = "'t\(Int.random(in: 0..<1000, using: &random))'"
            let list = "'l\(Int.random(in: 0..<4, using: &random))'"
            let item = Int.random(in: 1...8, using: &random)
            let pic = "x'0000000000000000000000000000000\(Int.random(in: 0..<4, using: &random))'"
            let own = "'own\(number)-\(Int.random(in: 0..<3, using: &random))'"
            let sql =
                switch Int.random(in: 0..<16, using: &random) {
                case 0: "INSERT OR IGNORE INTO list VALUES (\(list), \(text))"
                case 1: "UPDATE list SET name = \(text) WHERE id = \(list)"
                case 2: "DELETE FROM list WHERE id = \(list)"
                case 3...4: "INSERT OR REPLACE INTO item VALUES (\(item), \(text), NULL, (SELECT max(id) FROM list))"
                case 5: "UPDATE item SET note = \(text) WHERE id = \(item)"
                case 6: "UPDATE item SET title = \(text)"
                case 7: "DELETE FROM item WHERE id = \(item); INSERT INTO item VALUES (\(item), 'again', NULL, NULL)"
                case 8: "DELETE FROM item WHERE id > \(item)"
                case 9: "UPDATE OR REPLACE item SET id = \(item) WHERE id = \(9 - item)"
                case 10:
                    "INSERT INTO pic VALUES (\(pic), \(text), '2026-01-02 03:04:05.678') ON CONFLICT DO UPDATE SET name = \(text)"
                case 11: "DELETE FROM pic WHERE id = \(pic)"
                case 12:
                    "INSERT INTO item VALUES (\(item), 'gone', NULL, NULL) ON CONFLICT DO NOTHING; DELETE FROM item WHERE id = \(item)"
                case 13: "DELETE FROM list WHERE id = \(own)"
                default: "INSERT INTO list VALUES (\(own), \(text)) ON CONFLICT (id) DO UPDATE SET name = \(text)"
                }
            try device.run("BEGIN IMMEDIATE; \(sql); COMMIT")
        }
    }

    @Test(arguments: TestLength.seeds(20, short: 8, long: 400)) func devicesConverge(seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        let server = ContractServer(Self.tables)
        server.state.withLock { state in
            state.pageRows = Int.random(in: 1...6, using: &random)
            state.shownRows = Int.random(in: 1...3, using: &random)
            state.policy = random.chance(30) ? "checkBase" : "lastSyncWins"
        }
        var writers: [Writer] = []
        for number in 0..<Int.random(in: 2...4, using: &random) { writers.append(try await Writer(number, seed: seed)) }
        let networks = writers.map { FaultyTransport(server, percent: 15, seed: seed &* 31 &+ UInt64($0.number)) }
        func ignoringFaults(_ body: () async throws -> Void) async throws {
            do { try await body() } catch is SyncError {} catch WeirError.notAttached {}
        }
        for (writer, network) in zip(writers, networks) {
            try await ignoringFaults { try await writer.device.attach(network) }
        }
        for _ in 0..<80 {
            let index = Int.random(in: 0..<writers.count, using: &random)
            let writer = writers[index]
            try writer.write()
            if random.once(in: 3) { try await ignoringFaults { try await writer.device.weir.sync() } }
            if random.once(in: 15) {
                try await writer.device.restart()
                try await ignoringFaults { try await writer.device.attach(networks[index]) }
            }
            if random.once(in: 40) { server.state.withLock { $0.refusal = "outcome_expired" } }
            if random.once(in: 80) {
                server.state.withLock { $0.changeHistory(to: "e\(UInt64.random(in: 0..<1000, using: &random))") }
            }
        }
        for writer in writers { try await writer.device.attach(server) }
        let own = try writers.map { try $0.own() }
        for _ in 0..<3 { for writer in writers { try await writer.device.weir.sync() } }
        let fresh = try await Writer(9, seed: seed)
        try await fresh.device.attach(server)
        try await fresh.device.weir.sync()
        let comment = Comment("seed \(seed)")
        for (writer, own) in zip(writers, own) {
            #expect(try await writer.device.weir.pendingRows() == 0, comment)
            #expect(try writer.rows() == fresh.rows(), comment)
            #expect(try writer.unexplained().isEmpty, comment)
            #expect(try writer.states() == fresh.states(), comment)
            #expect(try writer.own() == own, comment)
            #expect(try writer.device.rows("SELECT reason FROM weir_parked").isEmpty, comment)
        }
    }
}
