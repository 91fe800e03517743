import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// An app that is killed between any two statements of a decision, and of what follows it.
@Suite struct ResolutionKillTests {
    @Test(arguments: [Resolution.keepLocal, .acceptServer, .merge(["title": .text("both")])])
    func aDecisionIsCarriedOutAsAWholeOrNotAtAll(resolution: Resolution) async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { ($0.policy, $0.refusedText) = ("checkBase", "bad") }
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', 'n'), ('b', 'B', 'n'), ('c', 'C', 'n')")
        try await device.weir.sync()
        server.write("item", "a", ["title": "theirs"])
        server.write("item", "b", nil)
        try device.run(
            "UPDATE item SET title = 'mine' WHERE id IN ('a', 'b'); INSERT INTO item VALUES ('r', 'r', 'bad')")
        try device.run("DELETE FROM item WHERE id = 'c'")
        server.write("item", "c", ["title": "theirs"])
        try await device.weir.sync()
        // One of them was decided on an older version.
        server.write("item", "a", ["note": "newer"])
        let shown = try await device.weir.keptEdits()
        #expect(shown.count == 4)
        try await device.weir.sync()
        let states = Mutex<[ContractServer.State]>([])
        let snapshots = StatementSnapshots(path: device.folder.file()) {
            let state = server.state.withLock { $0 }
            states.withLock { $0.append(state) }
        }
        try await device.restart()
        try await device.attach(server)
        // After each of the decisions, and before.
        var rowsAfter = [try device.rows()]
        for edit in shown {
            try await device.weir.resolve(edit, resolution)
            rowsAfter.append(try device.rows())
        }
        try await device.weir.sync()
        let (rows, live, open) = (try device.rows(), server.live, try await device.weir.keptEdits().count)
        await device.weir.close()
        snapshots.stop()

        #expect(snapshots.count > 6)
        for number in 0..<snapshots.count {
            let (killed, restored) = try await restored(number, snapshots, states.withLock { $0[number] })
            let comment = Comment("killed at state \(number) of \(snapshots.count)")
            let isOpen = Set(try await killed.weir.keptEdits().map(\.number))
            let decided = shown.filter { !isOpen.contains($0.number) }.count
            if decided < shown.count { #expect(try killed.rows() == rowsAfter[decided], comment) }
            // The user decides again about what is still shown, and the app repeats what it does not know to be done.
            for edit in shown { try await killed.weir.resolve(edit, resolution) }
            try await killed.weir.sync()
            #expect(try killed.rows() == rows, comment)
            #expect(restored.live == live, comment)
            #expect(try await killed.weir.pendingRows() == 0, comment)
            #expect(try await killed.weir.keptEdits().count == open, comment)
            #expect(try await killed.weir.conflictLog().count == shown.count, comment)
        }
    }

    /// The app after it was killed, and the server as it was then.
    private func restored(
        _ number: Int, _ snapshots: StatementSnapshots, _ state: ContractServer.State
    ) async throws -> (Device, ContractServer) {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0 = state }
        let killed = try await Device(copying: { try snapshots.write(number, to: $0) })
        // The lease of the killed process, which is this one, would be waited for.
        try await killed.attach(server) { $0.now = { Date(timeIntervalSinceNow: 2 * Lease.duration) } }
        return (killed, server)
    }

    @Test func whatWasNotStoredIsKeptOnceAndToldOnce() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { ($0.policy, $0.refusedText) = ("checkBase", "bad") }
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', 'n'), ('b', 'B', 'n'), ('c', 'C', 'n')")
        try await device.weir.sync()
        server.write("item", "a", ["title": "theirs"])
        server.write("item", "b", nil)
        let states = Mutex<[ContractServer.State]>([])
        let snapshots = StatementSnapshots(path: device.folder.file()) {
            let state = server.state.withLock { $0 }
            states.withLock { $0.append(state) }
        }
        try await device.restart()
        try await device.attach(server) { $0.slice = 1 }
        try await device.weir.write { db in
            try db.execute("UPDATE item SET title = 'mine'")
            try db.execute("INSERT INTO item VALUES ('r', 'r', 'bad')")
        }
        try await device.weir.sync()
        let (rows, outcomes) = (try device.rows(), try await device.weir.outcomes())
        #expect(
            outcomes.map { "\($0.row.key) \($0.status)" }.sorted() == [
                "'a' conflict", "'b' conflict", "'c' applied", "'r' refused",
            ])
        await device.weir.close()
        snapshots.stop()

        #expect(snapshots.count > 6)
        for number in 0..<snapshots.count {
            let (killed, _) = try await restored(number, snapshots, states.withLock { $0[number] })
            let isWritten = try killed.rows("SELECT count(*) FROM weir_outcome") != ["0"]
            try await killed.weir.sync()
            let comment = Comment("killed at state \(number) of \(snapshots.count)")
            #expect(
                try await killed.weir.outcomes().map(\.status) == (isWritten ? outcomes.map(\.status) : []), comment)
            #expect(try await killed.weir.keptEdits().count == (isWritten ? 3 : 0), comment)
            if isWritten { #expect(try killed.rows() == rows, comment) }
            #expect(try await killed.weir.pendingRows() == 0, comment)
        }
    }
}
