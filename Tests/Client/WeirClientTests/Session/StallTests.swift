import Foundation
import Synchronization
import TestClocks
import TestSignals
import Testing
import WeirClient

/// Nothing that is pending waits without end, and no call does.
@Suite(.timeLimit(.minutes(1))) struct StallTests {
    /// A transport whose requests to one path wait until they are cancelled.
    private func hanging(_ began: Signal<Void>) -> ScriptedTransport {
        ScriptedTransport { _, _ in
            began.send(())
            try await Task.sleep(for: .seconds(3600))
            throw ScriptedTransport.Lost()
        }
    }

    private func synced(_ server: ContractServer) async throws -> Device {
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        try await device.weir.sync()
        return device
    }

    @Test func aDeviceThatMayNotSendReceives() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try device.run("UPDATE item SET note = 'mine'")
        for number in 0..<5 { server.write("item", "b\(number)", ["title": "B"]) }
        server.state.withLock { $0.pageRows = 2 }
        try await device.attach(
            ScriptedTransport { request, _ in
                if request.url.path == "/v1/sync" { return .problem(403, "forbidden") }
                return try await server.send(request)
            })
        let error = await #expect(throws: SyncError.self) { try await device.weir.sync() }
        #expect(error?.kind == .forbidden)
        #expect(try device.rows().count == 6)
        #expect(try await device.weir.pendingRows() == 1)
        try await device.attach(server)
        try await device.weir.sync()
        #expect(server.live.first?.contains("mine") == true)
    }

    @Test func aServerThatRefusesEveryBatchIsAFault() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try device.run("UPDATE item SET note = 'mine'")
        try await device.attach(
            ScriptedTransport { request, _ in
                if request.url.path == "/v1/sync" { server.state.withLock { $0.refusal = "outcome_expired" } }
                return try await server.send(request)
            })
        await #expect(throws: SyncError.self) { try await device.weir.sync() }
        #expect(try await device.weir.pendingRows() == 1)
    }

    @Test func aTokenThatDoesNotComeKeepsNoCallWaiting() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        let (asked, granted) = (Signal<Void>(), Signal<Void>())
        // It does not notice that it is cancelled.
        defer { granted.send() }
        try await device.weir.attach("abc", server: Device.url, options: Device.options(server)) {
            asked.send()
            await granted.next()
            return "t"
        }
        let weir = device.weir
        let call = Task { try await weir.sync() }
        try await asked.nextOrCancellation()
        await device.weir.suspend()
        await #expect(throws: (any Error).self) { try await call.value }
    }

    @Test func aDeadlineHoldsAlsoWhereAnotherSessionIsUnderWay() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        let began = Signal<Void>()
        try await device.attach(hanging(began))
        let weir = device.weir
        let other = Task { try await weir.sync() }
        try await began.nextOrCancellation()
        #expect(try await device.weir.sync(until: Date(timeIntervalSinceNow: -1)) == false)
        await device.weir.close()
        await #expect(throws: (any Error).self) { try await other.value }
    }

    @Test func aWeirThatIsResumedWhileItIsBeingSuspendedSyncs() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        let (began, mayEnd) = (Signal<Void>(), Signal<Void>())
        // A request that takes a moment to end after it was cancelled.
        try await device.attach(
            ScriptedTransport { request, number in
                if number > 0 { return try await server.send(request) }
                began.send(())
                await Task { await mayEnd.next() }.value
                throw CancellationError()
            })
        try await device.weir.start()
        try await began.nextOrCancellation()
        let weir = device.weir
        let suspending = Task { await weir.suspend() }
        await #expect(throws: WeirError.suspended) {
            while true {
                _ = try await device.weir.pendingRows()
                await Task.yield()
            }
        }
        try await device.weir.resume()
        mayEnd.send(())
        await suspending.value
        try device.run("INSERT INTO item VALUES ('b', 'B', NULL)")
        try await device.weir.sync()
        #expect(server.live.count == 2)
        for await status in device.weir.status where status.phase == .idle { break }
        await device.weir.close()
    }

    @Test func attachingAgainWhileASessionIsUnderWayDoesNotEndSyncing() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        let began = Signal<Void>()
        try await device.attach(hanging(began))
        try await device.weir.start()
        try await began.nextOrCancellation()
        try device.run("INSERT INTO item VALUES ('b', 'B', NULL)")
        try await device.attach(server)
        for await status in device.weir.status
        where status.lastSuccess != nil && status.pendingRows == 0 && status.phase == .idle {
            if server.live.count == 2 { break }
        }
        #expect(server.live.count == 2)
        await device.weir.close()
    }

    @Test func theLeaseIsKeptWhileAResponseIsWaitedFor() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        let (began, clock) = (Signal<Void>(), ManualClock())
        let start = Date()
        let now = { @Sendable in start.addingTimeInterval(Double(clock.now.offset.components.seconds)) }
        var options = Device.options(hanging(began))
        options.clock = RunClock(clock)
        options.now = now
        try await device.weir.attach("abc", server: Device.url, options: options)
        let weir = device.weir
        let sync = Task { try await weir.sync() }
        try await began.nextOrCancellation()
        let other = Lease(holder: "other")
        for _ in 0..<6 {
            await clock.sleeper(for: Lease.renewal)
            #expect(throws: LeaseHeld()) { try other.take(in: device.database, now: now()) }
            clock.advance(by: Lease.renewal)
        }
        await device.weir.close()
        await #expect(throws: (any Error).self) { try await sync.value }
        try other.take(in: device.database, now: now())
    }
}
