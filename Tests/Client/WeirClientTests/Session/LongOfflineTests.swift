import Foundation
import Fuzzing
import Seeded
import Synchronization
import TestResources
import Testing
import WeirClient

/// A device that was offline for a year: many edits are pending, and many rows wait.
@Suite struct LongOfflineTests {
    private static let sql = """
        CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT);
        CREATE TABLE item (id INTEGER PRIMARY KEY, list TEXT REFERENCES list (id), title TEXT, note TEXT);
        """
    private static let names = ["list", "item"]
    private static let tables = [
        "list": ["name": "text"], "item": ["list": "text", "title": "text", "note": "text"],
    ]
    /// Edits are 50 times as many, and rows that wait 200 times.
    private static let unit = TestLength.count(40, short: 10, long: 1000)
    /// As long as notes are, and one string for all of them: the server here has little.
    private static let note = String(repeating: "note ", count: 300)
    private static let theirs = String(repeating: "their", count: 300)

    private struct Item: Equatable {
        let title: String
        let note: String?
        let version: Int
    }

    /// - Returns: what the server must have in the end.
    private func write(_ device: Device, _ server: ContractServer) async throws -> [String: Item] {
        let unit = Self.unit
        var items: [String: Item] = [:]
        for id in 1...(30 * unit) {
            server.write("item", "\(id)", ["title": "base \(id)", "note": Self.note])
            items["\(id)"] = Item(title: "base \(id)", note: Self.note, version: 1)
        }
        try await device.attach(server)
        try await device.weir.sync()
        try device.run(
            """
            PRAGMA foreign_keys = ON;
            WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < \(unit))
            INSERT INTO list SELECT 'mine' || i, 'my list' FROM n;
            WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < \(19 * unit))
            INSERT INTO item SELECT 1000000 + i, 'mine' || (i % \(unit) + 1), 'mine ' || i, NULL FROM n;
            UPDATE item SET title = 'edited ' || id WHERE id <= \(15 * unit);
            DELETE FROM item WHERE id > \(15 * unit) AND id <= \(25 * unit);
            UPDATE item SET id = id + 2000000 WHERE id > \(25 * unit) AND id <= \(25 * unit + 5 * unit / 2);
            """)
        for id in (5 * unit + 1)...(25 * unit) {
            server.write("item", "\(id)", ["note": Self.theirs])
            items["\(id)"] = Item(title: "base \(id)", note: Self.theirs, version: 2)
        }
        for id in 3_000_001...(3_000_000 + 180 * unit) {
            server.write("item", "\(id)", ["title": "new", "note": Self.note])
            items["\(id)"] = Item(title: "new", note: Self.note, version: 1)
        }
        // The edits come on top.
        for id in 1...(15 * unit) {
            let item = items["\(id)"]
            items["\(id)"] = Item(title: "edited \(id)", note: item?.note, version: (item?.version ?? 0) + 1)
        }
        for id in (15 * unit + 1)...(25 * unit + 5 * unit / 2) { items["\(id)"] = nil }
        for id in (25 * unit + 1)...(25 * unit + 5 * unit / 2) {
            items["\(2_000_000 + id)"] = Item(title: "base \(id)", note: Self.note, version: 1)
        }
        for id in 1...(19 * unit) { items["\(1_000_000 + id)"] = Item(title: "mine \(id)", note: nil, version: 1) }
        return items
    }

    @Test func manyEditsAndRowsArriveHoweverOftenTheDeviceIsKilled() async throws {
        let unit = Self.unit
        let server = ContractServer(Self.tables)
        server.state.withLock { $0.pageRows = 5 * unit }
        var device = try await Device(Self.sql, tables: Self.names)
        let expected = try await write(device, server)
        #expect(try await device.weir.pendingRows() == 50 * unit)

        let before = PeakMemory.begin()
        var random = SeededRandom(seed: 1)
        var kills = 0
        for attempt in 1... {
            let network = FaultyTransport(server, percent: 5, seed: UInt64(attempt))
            let statement = kills < 6 ? Int.random(in: 1...(400 * unit), using: &random) : .max
            let kill = try Kill(path: device.folder.file(), at: statement, network)
            try await device.restart()
            var options = Device.options(kill)
            // The lease of the killed process, which is this one, would be waited for.
            options.now = { Date(timeIntervalSinceNow: Double(attempt) * 2 * Lease.duration) }
            var isOver = false
            do {
                try await device.weir.attach("abc", server: Device.url, options: options)
                isOver = try await device.weir.sync()
            } catch is SyncError {}
            kill.stop()
            if kill.hasHappened {
                kills += 1
                await device.weir.close()
                device = try await Device(copying: { try kill.write(to: $0) }, tables: Self.names)
            } else if isOver {
                break
            }
        }
        #expect(kills > 0)
        if let before, let peak = PeakMemory.bytes, TestLength.current == .long {
            // The rows that came have more bytes; what the server here keeps of the edits has some, too.
            #expect(peak - before < 256 << 20, "from \(before >> 20) MB to \(peak >> 20) MB")
        }

        #expect(try await device.weir.pendingRows() == 0)
        #expect(try await device.weir.keptEdits().isEmpty)
        #expect(try await device.weir.parkedRows().isEmpty)
        let rows = server.state.withLock { $0.rows }
        let live = rows.values.filter { $0.table == "item" && !$0.isDeleted }
        #expect(live.count == expected.count)
        let wrong = live.filter { row in
            let item = Item(
                title: row.values["title"] as? String ?? "", note: row.values["note"] as? String, version: row.version)
            return item != expected[row.id]
        }
        #expect(wrong.isEmpty, "\(wrong.prefix(3))")
        #expect(rows.values.count { $0.table == "list" && $0.version == 1 } == unit)
        try expectEqual(device, rows)
    }

    /// The device has the same rows in the same versions.
    private func expectEqual(_ device: Device, _ rows: [String: ContractServer.Row]) throws {
        var (count, different) = (0, 0)
        try device.database.rows("SELECT id, title, note, list FROM item") { row in
            count += 1
            let values = rows["item \(row.string(at: 0))"]?.values ?? [:]
            for (index, name) in ["title", "note", "list"].enumerated() {
                if (values[name] as? String ?? "") != row.string(at: 1 + index) { different += 1 }
            }
        }
        #expect(count == rows.values.count { $0.table == "item" && !$0.isDeleted })
        #expect(different == 0)
        for (number, table) in [(1, "list"), (2, "item")] {
            var (states, other) = (0, 0)
            try device.database.rows("SELECT id, time_stamp, deleted FROM weir_row_\(number)") { row in
                states += 1
                let known = rows["\(table) \(row.string(at: 0))"]
                if known?.timeStamp != row.integer(at: 1) || known?.isDeleted != (row.integer(at: 2) == 1) {
                    other += 1
                }
            }
            #expect(states == rows.values.count { $0.table == table })
            #expect(other == 0)
        }
    }
}
