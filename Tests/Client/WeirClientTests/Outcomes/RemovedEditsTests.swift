import Synchronization
import Testing
import WeirClient

/// Changes that were kept, and that the app ends without a decision.
@Suite struct RemovedEditsTests {
    /// A device whose insertion of `n` was refused, and whose changes of `a` as well.
    private func refused(_ server: ContractServer) async throws -> Device {
        let device = try await Device.synced(server)
        server.state.withLock { $0.refusedText = "bad" }
        try device.run("INSERT INTO item VALUES ('n', 'bad', 'mine'); UPDATE item SET title = 'bad' WHERE id = 'a'")
        try await device.weir.sync()
        #expect(try device.rows() == ["a A -", "b B -", "n bad mine"])
        #expect(try await device.weir.keptEdits().map(\.key).count == 2)
        return device
    }

    private func kept(_ device: Device) async throws -> [SQLValue] { try await device.weir.keptEdits().map(\.key) }

    /// Nothing else names the row.
    @Test func aRefusedInsertionStaysKeptWhileItsRowIsThere() async throws {
        let server = ContractServer(Device.tables)
        let device = try await refused(server)
        try await device.weir.removeKeptEdits(through: .max)
        #expect(try await kept(device) == [.text("n")])
        #expect(device.weir.currentStatus.needsAttention == [.keptEdits(1)])
        #expect(try device.rows() == ["a A -", "b B -", "n bad mine"])
        #expect(try await device.weir.state(of: "item", .text("n"))?.state == .refused)
        // The file is not detached with it.
        await #expect(throws: WeirError.unsent(rows: 0, keptEdits: 1)) { try await device.weir.detach() }
        try device.run("DELETE FROM item WHERE id = 'n'")
        try await device.weir.removeKeptEdits(through: .max)
        #expect(try await kept(device).isEmpty)
        #expect(try await device.weir.conflictLog().allSatisfy { $0.ending == .removed })
        try await device.weir.sync()
        #expect(try await device.weir.state(of: "item", .text("n")) == nil)
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func aRefusedInsertionIsRemovedOnceTheRowIsChanged() async throws {
        let server = ContractServer(Device.tables)
        let device = try await refused(server)
        // Refused once more: only the newest change is needed to name the row.
        try device.run("UPDATE item SET note = 'again' WHERE id = 'n'")
        try await device.weir.sync()
        #expect(try await kept(device).filter { $0 == .text("n") }.count == 2)
        try await device.weir.removeKeptEdits(through: .max)
        #expect(try await kept(device) == [.text("n")])
        // What is pending names it as well.
        try device.run("UPDATE item SET title = 'good' WHERE id = 'n'")
        try await device.weir.removeKeptEdits(through: .max)
        #expect(try await kept(device).isEmpty)
        #expect(try await device.weir.state(of: "item", .text("n"))?.state == .pending)
        try await device.weir.sync()
        #expect(server.live.contains(#"item n {"note":"again","title":"good"} 1"#))
    }
}
