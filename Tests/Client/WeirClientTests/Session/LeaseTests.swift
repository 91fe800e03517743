import Foundation
import Testing
import WeirClient

@Suite struct LeaseTests {
    private let now = Date(timeIntervalSince1970: 1_000_000)

    @Test func itIsOneHoldersUntilItRunsOutOrIsGivenBack() throws {
        let app = try SyncedApp.withItem()
        let database = app.opened.database
        let (first, second) = (Lease(holder: "first"), Lease(holder: "second"))
        try first.take(in: database, now: now)
        #expect(throws: LeaseHeld()) { try second.take(in: database, now: now + 89) }
        // Renewed.
        try first.take(in: database, now: now + 60)
        #expect(throws: LeaseHeld()) { try second.take(in: database, now: now + 100) }
        try second.take(in: database, now: now + 151)
        // The first one has lost it, and cannot give it back.
        try first.release(in: database)
        #expect(throws: LeaseHeld()) { try first.take(in: database, now: now + 152) }
        try second.release(in: database)
        try first.take(in: database, now: now + 153)
    }

    @Test func aProcessThatIsGoneKeepsNoneWaiting() throws {
        let app = try SyncedApp.withItem()
        let database = app.opened.database
        // No system has so many.
        try Lease(holder: "gone", process: .max).take(in: database, now: now)
        try Lease(holder: "first").take(in: database, now: now)
        // One of another user, which may not be asked, exists.
        try app.run("UPDATE weir_meta SET value = 1 WHERE key = 'lease_process'")
        #expect(throws: LeaseHeld()) { try Lease(holder: "second").take(in: database, now: now) }
    }

    /// In a container the app may have the same number after each start.
    @Test func aProcessThatIsGoneAndHadThisOnesNumberKeepsNoneWaiting() throws {
        let app = try SyncedApp.withItem()
        let database = app.opened.database
        try Lease(holder: "first").take(in: database, now: now)
        #expect(throws: LeaseHeld()) { try Lease(holder: "second").take(in: database, now: now) }
        try app.run("UPDATE weir_meta SET value = 'of the one before' WHERE key = 'lease_holder'")
        try Lease(holder: "second").take(in: database, now: now)
        #expect(throws: LeaseHeld()) { try Lease(holder: "third").take(in: database, now: now) }
    }

    @Test func aClockThatWasSetBackKeepsNoneWaitingForLong() throws {
        let app = try SyncedApp.withItem()
        let database = app.opened.database
        try Lease(holder: "first").take(in: database, now: now + 86_400)
        try Lease(holder: "second").take(in: database, now: now)
    }

    /// A process that was suspended until its lease ran out continues with the answer that it had received.
    @Test func anOlderVersionDoesNotReplaceTheOneThatAnotherProcessHasReceived() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        let other = try await device.otherWeir()
        server.write("item", "a", ["title": "older"])
        let transport = ScriptedTransport { request, number in
            let response = try await server.send(request)
            guard number == 0 else { return response }
            server.write("item", "a", ["title": "newer"])
            var options = Device.options(server)
            options.now = { Date(timeIntervalSinceNow: 2 * Lease.duration) }
            try await other.attach("abc", server: Device.url, options: options)
            try await other.sync()
            return response
        }
        try await device.attach(transport)
        try await device.weir.sync()
        await other.close()
        #expect(try device.rows() == ["a newer -", "b B -"])
    }
}
