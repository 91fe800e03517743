import TestResources
import Testing
import WeirClient

/// Triggers of the app that write synced tables, on the device whose user writes and on those that receive it.
@Suite struct AppTriggerTests {
    static let tables = [
        "item": ["title": "text", "updated": "text", "changes": "integer"], "total": ["rows": "integer"],
    ]
    static let sql = """
        CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, updated TEXT, changes INTEGER);
        CREATE TABLE total (id TEXT PRIMARY KEY NOT NULL, rows INTEGER)
        """

    /// - Parameter clock: what the device has for the time.
    private func device(_ server: ContractServer, clock: String, condition: String, slice: Int) async throws -> Device {
        let device = try await Device(Self.sql, tables: ["item", "total"])
        try device.run(
            """
            CREATE TRIGGER touch AFTER UPDATE OF title ON item \(condition) BEGIN
            UPDATE item SET updated = '\(clock)', changes = changes + 1 WHERE id = NEW.id; END;
            CREATE TRIGGER added AFTER INSERT ON item \(condition) BEGIN
            UPDATE item SET updated = '\(clock)', changes = 0 WHERE id = NEW.id;
            UPDATE total SET rows = rows + 1; END;
            CREATE TRIGGER removed AFTER DELETE ON item \(condition) BEGIN UPDATE total SET rows = rows - 1; END
            """)
        try await device.attach(server) { $0.slice = slice }
        return device
    }

    private func rows(_ device: Device) throws -> [String] {
        try device.rows("SELECT id || ' ' || title || ' ' || updated || ' ' || changes FROM item ORDER BY id")
            + device.rows("SELECT rows FROM total")
    }

    /// With one transaction for an answer, and with several.
    @Test(arguments: [1, 250]) func triggersThatDoNotRunForWhatComesGiveEqualDevices(slice: Int) async throws {
        let server = ContractServer(Self.tables)
        let condition = "WHEN NOT EXISTS (SELECT 1 FROM weir_applying)"
        let first = try await device(server, clock: "t1", condition: condition, slice: slice)
        let second = try await device(server, clock: "t2", condition: condition, slice: slice)
        try first.run(
            "INSERT INTO total VALUES ('t', 0); INSERT INTO item (id, title) VALUES ('a', 'A'), ('b', 'B'), ('c', 'C')")
        try await first.weir.sync()
        try await second.weir.sync()
        #expect(try rows(second) == ["a A t1 0", "b B t1 0", "c C t1 0", "3"])
        try second.run("UPDATE item SET title = 'A2' WHERE id = 'a'; DELETE FROM item WHERE id = 'b'")
        try await second.weir.sync()
        try await first.weir.sync()
        for device in [first, second] {
            #expect(try rows(device) == ["a A2 t2 1", "c C t1 0", "2"])
            #expect(try await device.weir.pendingRows() == 0)
        }
        // What Weir writes for the app is a write of the app.
        try await first.weir.write { try $0.execute("UPDATE item SET title = 'C2' WHERE id = 'c'") }
        try await first.weir.sync()
        try await second.weir.sync()
        for device in [first, second] { #expect(try rows(device) == ["a A2 t2 1", "c C2 t1 1", "2"]) }
    }

    /// Which is why they need the condition.
    @Test func triggersWithoutTheConditionRunForWhatComesAndAreNotSent() async throws {
        let server = ContractServer(Self.tables)
        let first = try await device(server, clock: "t1", condition: "", slice: 250)
        let second = try await device(server, clock: "t2", condition: "", slice: 250)
        try first.run("INSERT INTO item (id, title) VALUES ('a', 'A')")
        try await first.weir.sync()
        try await second.weir.sync()
        #expect(try first.rows("SELECT updated FROM item") == ["t1"])
        #expect(try second.rows("SELECT updated FROM item") == ["t2"])
        #expect(try await second.weir.pendingRows() == 0)
    }
}
