import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// The next page of a pull is asked for while the one before is applied.
@Suite(.timeLimit(.minutes(1))) struct NextPageTests {
    private func server(rows: Int) -> ContractServer {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.pageRows = 2 }
        for number in 0..<rows { server.write("item", "a\(number)", ["title": "T"]) }
        return server
    }

    /// A device that has so many rows, and a server that has more.
    private func synced(rows: Int, then more: Int) async throws -> (ContractServer, Device) {
        let server = server(rows: rows)
        let device = try await Device()
        try await device.attach(server)
        try await device.weir.sync()
        for number in 0..<more { server.write("item", "b\(number)", ["title": "T"]) }
        return (server, device)
    }

    /// Rows are applied one by one, with a wait after each.
    private func attach(
        _ device: Device, _ transport: any Transport, waiting wait: @escaping @Sendable () async throws -> Void
    ) async throws {
        var options = Device.options(transport)
        options.slice = 1
        options.clock = RunClock(WaitingClock(wait: wait))
        try await device.weir.attach("abc", server: Device.url, options: options)
    }

    @Test func itIsRequestedBeforeTheFirstIsApplied() async throws {
        let (server, device) = try await synced(rows: 6, then: 4)
        let (second, arrival) = AsyncStream<Void>.makeStream()
        let transport = ScriptedTransport { request, number in
            if number == 1 { arrival.finish() }
            return try await server.send(request)
        }
        try await attach(device, transport) { for await _ in second {} }
        try await device.weir.sync()
        #expect(try device.rows().count == 10)
        #expect(transport.requests.count == 2)
    }

    @Test func itIsDroppedWhereTheAppHasWrittenMeanwhile() async throws {
        let (server, device) = try await synced(rows: 0, then: 6)
        let path = device.folder.file()
        let hasWritten = Mutex(false)
        let transport = ScriptedTransport { request, _ in try await server.send(request) }
        try await attach(device, transport) {
            if hasWritten.withLock({ isWritten in
                defer { isWritten = true }
                return isWritten
            }) {
                return
            }
            let database = try Database(path: path)
            try database.run("INSERT INTO item VALUES ('mine', 'M', NULL)")
            database.close()
        }
        try await device.weir.sync()
        #expect(try device.rows().count == 7)
        #expect(server.live.count == 7)
        #expect(transport.requests.map(\.url.path).prefix(3) == ["/v1/pull", "/v1/pull", "/v1/sync"])
        #expect(server.state.withLock { $0.applied } == 1)
    }

    /// The user logs in to another account while a page is under way.
    @Test func itIsDroppedWhereTheAppHasAnotherTokenMeanwhile() async throws {
        let (server, device) = try await synced(rows: 0, then: 6)
        let other = ContractServer(Device.tables)
        other.state.withLock { $0.syncID = "xyz" }
        try device.run("INSERT INTO item VALUES ('mine', 'M', NULL)")
        let transport = ScriptedTransport { request, _ in
            if request.url.path == "/v1/watch" { return .problem(401, "unauthenticated") }
            let isOther = request.headers["authorization"] == "Bearer xyz"
            return try await (isOther ? other : server).send(request)
        }
        let weir = device.weir
        let rejections = Counter()
        var options = Device.options(transport)
        options.slice = 1
        options.clock = RunClock(
            WaitingClock {
                guard rejections.next() == 1 else { return }
                await #expect(throws: SyncError.self) { try await Weir.watch({ weir }) { _ in } }
            })
        let logins = Counter()
        try await weir.attach("abc", server: Device.url, options: options) { logins.next() == 1 ? "abc" : "xyz" }
        let error = await #expect(throws: SyncError.self) { try await weir.sync() }
        #expect(error?.kind == .otherAccount)
        #expect(transport.requests.contains { $0.url.path == "/v1/watch" })
        #expect(other.requests.allSatisfy { $0.url.path == "/v1/pull" })
        #expect(other.live.isEmpty)
        await weir.close()
    }

    @Test func itsFailureEndsTheSessionOnceThePageBeforeIsApplied() async throws {
        let server = server(rows: 6)
        let device = try await Device()
        try await device.attach(
            ScriptedTransport { request, number in
                if number == 3 { throw ScriptedTransport.Lost() }
                return try await server.send(request)
            })
        await #expect(throws: SyncError.self) { try await device.weir.sync() }
        let rows = try device.rows().count
        #expect(rows > 0 && rows < 6)
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows().count == 6)
    }
}
