import Foundation
import TestResources
import Testing
import WeirClient

/// A table that another process renames while this one has the file open.
@Suite struct RenamedTableTests {
    private func expectNoTable(_ device: Device, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let weir = device.weir
        let error = await #expect(throws: SyncError.self, sourceLocation: sourceLocation) { try await weir.sync() }
        #expect(error?.kind == .file, sourceLocation: sourceLocation)
        #expect(error?.message.contains("the table item cannot be synced") == true, sourceLocation: sourceLocation)
        await #expect(
            sourceLocation: sourceLocation, performing: { _ = try await weir.pendingRows() },
            throws: { error in
                if case WeirError.unsupportedTable(name: "item", _) = error { true } else { false }
            })
    }

    /// Whether the other process has opened the file under the new name.
    @Test(arguments: [false, true]) func isMissedByNameAndLosesNothing(isOpened: Bool) async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        try device.run("UPDATE item SET title = 'before' WHERE id = 'a'")
        try device.run("ALTER TABLE item RENAME TO thing")
        if isOpened {
            let other = try await Weir.open(URL(fileURLWithPath: device.folder.file()), tables: ["thing"])
            await other.close()
        }
        try device.run("UPDATE thing SET title = 'after' WHERE id = 'b'")
        server.write("item", "c", ["title": "C"])
        try await expectNoTable(device)
        try await expectNoTable(device)
        #expect(server.live.count == 3 && server.live.allSatisfy { !$0.contains("before") && !$0.contains("after") })
        // The app knows it by the new name, which the server does not have.
        try await device.restart(tables: ["thing"])
        #expect(await device.weir.gaps.isEmpty)
        #expect(try await device.weir.pendingRows() == 2)
        try await device.attach(server)
        try await device.weir.sync()
        #expect(device.weir.currentStatus.needsAttention == [.unknownTables(["thing"])])
        await device.weir.close()
        try device.run("ALTER TABLE thing RENAME TO item")
        try await device.restart(tables: ["item"])
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows() == ["a before -", "b after -", "c C -"])
        #expect(server.live.map { $0.prefix(6) } == ["item a", "item b", "item c"])
        #expect(server.live[0].contains("before") && server.live[1].contains("after"))
        #expect(try await device.weir.pendingRows() == 0)
    }

    /// The record of an insertion that was ignored means nothing while the row is there.
    @Test func isFoldedBeforeAMigrationThatRemovesRows() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        try device.run("INSERT OR IGNORE INTO item VALUES ('a', 'T', 'n'); ALTER TABLE item RENAME TO thing")
        await device.weir.close()
        let url = URL(fileURLWithPath: device.folder.file())
        let migrated = try await Weir.migrate(url, tables: ["thing"]) {
            try device.run("DELETE FROM thing WHERE id = 'a'")
        }
        await migrated.close()
        try device.run("ALTER TABLE thing RENAME TO item")
        try await device.restart()
        try await device.attach(server)
        try await device.weir.sync()
        #expect(server.live.count == 2)
    }

    @Test func whileAnAnswerIsWaitedForIsMissedByNameAndLosesNothing() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        server.write("item", "c", ["title": "C"])
        try device.run("UPDATE item SET title = 'before' WHERE id = 'a'")
        try await device.attach(device.network(server, writing: "ALTER TABLE item RENAME TO thing"))
        try await expectNoTable(device)
        try device.run("UPDATE thing SET title = 'after' WHERE id = 'b'; ALTER TABLE thing RENAME TO item")
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows() == ["a before -", "b after -", "c C -"])
        #expect(server.live[0].contains("before") && server.live[1].contains("after"))
    }
}
