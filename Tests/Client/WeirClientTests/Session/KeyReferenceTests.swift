import Synchronization
import TestResources
import Testing
import WeirClient

/// Columns that name keys of other rows, on a device whose tables show no value yet.
@Suite struct KeyReferenceTests {
    private static let uuids = [
        "C4CA4238-A0B9-4382-8DCC-509A6F75849B", "c81e728d-9d4c-4f63-ab06-7f89cc14862c",
        "ECCBC87E-4B5C-4E2F-A28A-FD9F2A7BAF3C",
    ]

    private static func sql(_ key: String, _ reference: String) -> String {
        """
        CREATE TABLE list (id \(key) PRIMARY KEY NOT NULL, name TEXT);
        CREATE TABLE task (
            id \(key) PRIMARY KEY NOT NULL, list \(reference) REFERENCES list (id), up \(reference) REFERENCES task)
        """
    }

    private static func server(_ type: String) -> ContractServer {
        ContractServer(["list": ["name": "text"], "task": ["list": type, "up": type]])
    }

    private func device(
        _ sql: String, _ server: ContractServer, orphans: OrphanPolicy = .park
    ) async throws -> Device {
        let device = try await Device(sql, tables: ["list", "task"])
        try await device.attach(server) { $0.orphans = orphans }
        return device
    }

    private func tasks(_ device: Device) throws -> [String] {
        try device.rows("SELECT quote(id) || ' ' || quote(list) || ' ' || quote(up) FROM task ORDER BY id")
    }

    /// A new device has the same rows as the one that has written them.
    private func expectSame(
        _ new: Device, as device: Device, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        #expect(try tasks(new) == tasks(device), sourceLocation: sourceLocation)
        #expect(try new.rows("SELECT 'x' FROM pragma_foreign_key_check()").isEmpty, sourceLocation: sourceLocation)
        #expect(try await new.weir.parkedRows().isEmpty, sourceLocation: sourceLocation)
        #expect(try await new.weir.pendingRows() == 0, sourceLocation: sourceLocation)
    }

    /// The lists come before the tasks, or after them.
    @Test(arguments: ["text", "uuid"], ["BLOB", "TEXT", ""]) func aReferenceToAUUIDInBytesIsInBytes(
        type: String, declared: String
    ) async throws {
        let server = Self.server(type)
        let sql = Self.sql("BLOB", declared)
        let device = try await device(sql, server)
        try device.run(
            """
            INSERT INTO list VALUES (x'\(String(repeating: "a1", count: 16))', 'L');
            INSERT INTO task VALUES (x'\(String(repeating: "b2", count: 16))', (SELECT id FROM list), NULL);
            INSERT INTO task SELECT x'\(String(repeating: "c3", count: 16))', list, id FROM task
            """)
        try await device.weir.sync()
        let new = try await self.device(sql, server)
        try await new.weir.sync()
        try await expectSame(new, as: device)
        try device.run("UPDATE list SET name = 'L2'")
        try await device.weir.sync()
        let newest = try await self.device(sql, server)
        server.state.withLock { $0.pageRows = 1 }
        try await newest.weir.sync()
        try await expectSame(newest, as: device)
        // A change of it is sent as ever.
        try newest.run("UPDATE task SET up = id")
        try await newest.weir.sync()
        try await device.weir.sync()
        try await expectSame(newest, as: device)
    }

    @Test(arguments: ["text", "uuid"]) func aReferenceToANumberIsANumber(type: String) async throws {
        let server = Self.server(type)
        let sql = """
            CREATE TABLE list (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE task (id INTEGER PRIMARY KEY, list REFERENCES list, up REFERENCES task)
            """
        let device = try await device(sql, server)
        try device.run("INSERT INTO list VALUES (7, 'L'); INSERT INTO task VALUES (1, 7, NULL), (2, 7, 1)")
        try await device.weir.sync()
        let new = try await self.device(sql, server)
        try await new.weir.sync()
        try await expectSame(new, as: device)
    }

    /// Whether the lists come after the tasks.
    @Test(arguments: [OrphanPolicy.park, .delete, .keep], [false, true])
    func aReferenceToAUUIDAsTextIsInTheCaseOfTheKey(orphans: OrphanPolicy, isLate: Bool) async throws {
        let server = Self.server("uuid")
        let sql = Self.sql("TEXT", "TEXT")
        let device = try await device(sql, server)
        for (number, id) in Self.uuids.enumerated() {
            try device.run(
                """
                INSERT INTO list VALUES ('\(id)', 'L'); INSERT INTO task VALUES ('\(id)', '\(id)', NULL);
                UPDATE task SET up = '\(Self.uuids[0])' WHERE \(number) > 0 AND id = '\(id)'
                """)
        }
        try await device.weir.sync()
        if isLate {
            try device.run("UPDATE list SET name = 'L2'")
            try await device.weir.sync()
        }
        let live = server.live
        for pageRows in [1, 1000] {
            server.state.withLock { $0.pageRows = pageRows }
            let new = try await self.device(sql, server, orphans: orphans)
            try await new.weir.sync()
            try await expectSame(new, as: device)
            try await new.weir.sync()
            try await expectSame(new, as: device)
        }
        #expect(server.live == live)
    }

    @Test func aParkedRowFindsAParentWhoseKeyIsInUpperCase() async throws {
        let server = Self.server("uuid")
        let sql = Self.sql("TEXT", "TEXT")
        let device = try await device(sql, server)
        let id = Self.uuids[0]
        server.write("task", "t", ["list": id.lowercased()])
        try await device.weir.sync()
        #expect(try await device.weir.parkedRows().map(\.id) == ["t"])
        server.write("list", id, ["name": "L"])
        try await device.weir.sync()
        #expect(try tasks(device) == ["'t' '\(id)' NULL"])
        #expect(try await device.weir.parkedRows().isEmpty)
    }
}
