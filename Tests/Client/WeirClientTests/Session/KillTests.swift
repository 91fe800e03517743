import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// A device that is killed between any two statements of its sessions.
@Suite struct KillTests {
    @Test(arguments: [(rowsOfATransaction: Applying.slice, states: 12), (1, 20)])
    func aDeviceThatIsKilledAtAnyStatementLosesNothingAndDoublesNothing(
        rowsOfATransaction: Int, states leastStates: Int
    ) async throws {
        let server = ContractServer(Device.tables)
        for id in 0..<6 { server.write("item", "old\(id)", ["title": "T"]) }
        server.state.withLock { ($0.pageRows, $0.shownRows) = (4, 1) }
        let device = try await Device()
        let states = Mutex<[ContractServer.State]>([])
        let snapshots = StatementSnapshots(path: device.folder.file()) {
            let state = server.state.withLock { $0 }
            states.withLock { $0.append(state) }
        }
        // The connection of a Weir that is opened from now on is recorded.
        try await device.restart()
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL), ('b', 'B', NULL)")
        var options = Device.options(server)
        options.slice = rowsOfATransaction
        try await device.weir.attach("abc", server: Device.url, options: options)
        try await device.weir.sync()
        try device.run("UPDATE item SET note = 'n' WHERE id IN ('a', 'old1'); DELETE FROM item WHERE id = 'old2'")
        server.write("item", "old3", ["title": "other"])
        try await device.weir.sync()
        await device.weir.close()
        snapshots.stop()

        #expect(snapshots.count > leastStates)
        for number in 0..<snapshots.count {
            // The server is as it was when the device was killed.
            let restored = ContractServer(Device.tables)
            let state = states.withLock { $0[number] }
            restored.state.withLock { $0 = state }
            let killed = try await Device(copying: { try snapshots.write(number, to: $0) })
            let before = try killed.rows()
            // The lease of the killed process, which is this one, would be waited for.
            options.transport = restored
            options.now = { Date(timeIntervalSinceNow: 2 * Lease.duration) }
            try await killed.weir.attach("abc", server: Device.url, options: options)
            try await killed.weir.sync()
            let comment = Comment("killed at state \(number) of \(snapshots.count)")
            #expect(try await killed.weir.pendingRows() == 0, comment)
            // What the app had written is there, and at the server.
            let rows = try killed.rows()
            for row in before where !row.hasPrefix("old") { #expect(rows.contains(row), comment) }
            let live = restored.live
            #expect(live.count == rows.count, comment)
            for row in live where row.hasPrefix("item a") || row.hasPrefix("item b") {
                #expect(row.hasSuffix(row.contains(#""note":"n""#) ? " 2" : " 1"), comment)
            }
            let fresh = try await Device()
            try await fresh.attach(restored)
            try await fresh.weir.sync()
            #expect(try fresh.rows() == rows, comment)
            #expect(try Set(fresh.states()).isSuperset(of: killed.states().filter { $0.hasSuffix("0") }), comment)
        }
    }
}
