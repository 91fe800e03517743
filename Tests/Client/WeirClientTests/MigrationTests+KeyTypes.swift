import Testing
import WeirClient

/// Migrations that change the type of a table's key.
extension MigrationTests {
    /// Creates the table again with keys in 16 bytes, or with the texts that they were.
    private static func changingKeys(to type: String, _ key: String) -> String {
        """
        CREATE TABLE new_item (id \(type) PRIMARY KEY NOT NULL, title TEXT, note TEXT);
        INSERT INTO new_item SELECT \(key), title, note FROM item;
        DROP TABLE item;
        ALTER TABLE new_item RENAME TO item;
        """
    }

    private static let uuid = "00112233-4455-6677-8899-aabbccddeeff"
    private static let bytes = "x'00112233445566778899aabbccddeeff'"

    /// A device with one row that the server has.
    private func syncedUUID(_ server: ContractServer) async throws -> Device {
        let device = try await Device()
        try device.run("INSERT INTO item VALUES ('\(Self.uuid)', 'A', 'n')")
        try await device.attach(server)
        try await device.weir.sync()
        return device
    }

    /// No edit, and no row of the server, would be found under its new key.
    @Test func aKeyOfAnotherTypeIsRefusedWhileRowsAreKnownAndLosesNoEdit() async throws {
        let server = ContractServer(Self.tables)
        let device = try await syncedUUID(server)
        await device.weir.close()
        try device.run("UPDATE item SET title = 'edited'")
        let refusal = await #expect(throws: WeirError.self) {
            try await Weir.migrate(url(device), tables: ["item"]) {
                try device.run(Self.changingKeys(to: "BLOB", Self.bytes))
            }
        }
        guard case .unsupportedTable("item", let reason) = refusal else {
            Issue.record("\(String(describing: refusal))")
            return
        }
        #expect(reason.contains("id is of type BLOB and was of type TEXT"))
        let weir = try await Weir.migrate(url(device), tables: ["item"]) {
            try device.run(Self.changingKeys(to: "TEXT", "'\(Self.uuid)'"))
        }
        #expect(try await weir.pendingRows() == 1)
        try await attach(weir, server)
        try await weir.sync()
        #expect(server.live == [#"item \#(Self.uuid) {"note":"n","title":"edited"} 2"#])
    }

    /// What the app writes to them until it is mended is sent.
    @Test func otherTablesAreCapturedWhereAMigrationLeavesOneThatIsRefused() async throws {
        let server = ContractServer(Self.tables)
        let device = try await Device(
            "\(Device.schema); CREATE TABLE thing (id TEXT PRIMARY KEY NOT NULL, title TEXT)",
            tables: ["item", "thing"])
        try device.run("INSERT INTO item VALUES ('\(Self.uuid)', 'A', 'n'); INSERT INTO thing VALUES ('t', 'T')")
        try await device.attach(server)
        try await device.weir.sync()
        await device.weir.close()
        await #expect(throws: WeirError.self) {
            try await Weir.migrate(url(device), tables: ["item", "thing"]) {
                try device.run(Self.changingKeys(to: "BLOB", Self.bytes))
            }
        }
        try device.run("UPDATE thing SET title = 'edited'")
        let weir = try await Weir.migrate(url(device), tables: ["item", "thing"]) {
            try device.run(Self.changingKeys(to: "TEXT", "'\(Self.uuid)'"))
        }
        #expect(await weir.gaps.map(\.table) == ["item"])
        try await attach(weir, server)
        try await weir.sync()
        #expect(server.live.last == #"thing t {"title":"edited"} 2"#)
    }

    /// Attaching adopts all rows.
    @Test func aKeyOfAnotherTypeIsTakenBeforeTheFileIsAttached() async throws {
        let server = ContractServer(Self.tables)
        let device = try await Device()
        try device.run("INSERT INTO item VALUES ('\(Self.uuid)', 'A', 'n')")
        await device.weir.close()
        let weir = try await Weir.migrate(url(device), tables: ["item"]) {
            try device.run(Self.changingKeys(to: "BLOB", Self.bytes))
        }
        try await attach(weir, server)
        try await weir.sync()
        #expect(server.live == [#"item \#(Self.uuid) {"note":"n","title":"A"} 1"#])
    }

    /// The app had declared another type than the server's ids have.
    @Test func aKeyOfAnotherTypeIsTakenIfNoRowHadOneOfTheFirst() async throws {
        let server = ContractServer(Self.tables)
        server.write("item", "a", ["title": "A", "note": "n"])
        let device = try await Device("CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT, note TEXT)")
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try await device.weir.parkedRows().count == 1)
        await device.weir.close()
        let weir = try await Weir.migrate(url(device), tables: ["item"]) {
            try device.run(Self.changingKeys(to: "TEXT", "id"))
        }
        try await attach(weir, server)
        server.write("item", "b", ["title": "B", "note": "n"])
        try await weir.sync()
        #expect(try device.rows("SELECT id FROM item ORDER BY id") == ["a", "b"])
    }

    @Test func aKeyOfAnotherTypeIsTakenOnceTheFileIsDetached() async throws {
        let server = ContractServer(Self.tables)
        let device = try await syncedUUID(server)
        try await device.weir.detach(.keep)
        await device.weir.close()
        let weir = try await Weir.migrate(url(device), tables: ["item"]) {
            try device.run(Self.changingKeys(to: "BLOB", Self.bytes))
        }
        try await attach(weir, server)
        try device.run("UPDATE item SET title = 'edited' WHERE id = \(Self.bytes)")
        try await weir.sync()
        #expect(server.live == [#"item \#(Self.uuid) {"note":"n","title":"edited"} 2"#])
        #expect(try device.rows("SELECT hex(id) || title FROM item") == ["00112233445566778899AABBCCDDEEFFedited"])
    }
}
