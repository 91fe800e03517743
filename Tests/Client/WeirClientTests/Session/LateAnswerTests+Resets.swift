import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Answers to requests from before another process has reset the file, which then ends.
extension LateAnswerTests {
    enum Reset: CaseIterable, Sendable {
        /// The user logs out, and in again.
        case detachment
        /// A linked owner is revoked, and granted again.
        case revocation
        /// A row could not be written as the server has it.
        case incompleteRow
    }

    /// A device that has synced rows of its account and of a linked owner, each of which gets another one then.
    private static func synced() async throws -> (device: Device, server: ContractServer) {
        let server = ContractServer(Device.tables.merging(["tag": ["title": "text"]]) { $1 })
        server.state.withLock { $0.links = ["bob"] }
        server.write("item", "a", ["title": "A"])
        server.write("item", "b", ["title": "B"], owner: "bob")
        server.write("tag", "t", ["title": "T"], owner: "eve")
        let device = try await Device()
        try await device.attach(server)
        try await device.weir.sync()
        server.write("item", "c", ["title": "C"])
        server.write("item", "d", ["title": "D"], owner: "bob")
        return (device, server)
    }

    /// A transport over which the first answer arrives after something else has happened.
    private static func network(
        _ server: ContractServer, _ meanwhile: @escaping @Sendable () async throws -> Void
    ) -> ScriptedTransport {
        ScriptedTransport { request, number in
            let response = try await server.send(request)
            if number == 0 { try await meanwhile() }
            return response
        }
    }

    /// The options of a process which finds that the lease has run out.
    private static func later(_ transport: any Transport) -> SyncOptions {
        var options = Device.options(transport)
        options.now = { Date(timeIntervalSinceNow: 2 * Lease.duration) }
        return options
    }

    /// A network that breaks down after so many answers.
    private static func broken(_ server: ContractServer, after count: Int) -> ScriptedTransport {
        ScriptedTransport { request, number in
            if number >= count { throw ScriptedTransport.Lost() }
            return try await server.send(request)
        }
    }

    /// - Parameter hasDrained: whether everything was pulled before in the same session.
    @Test(arguments: Reset.allCases, [false, true])
    func anAnswerFromBeforeAResetIsNotApplied(reset: Reset, hasDrained: Bool) async throws {
        let (device, server) = try await Self.synced()
        let other = try await device.otherWeir()
        let path = device.folder.file()
        if hasDrained { try device.run("INSERT INTO item VALUES ('e', 'e', NULL)") }
        let transport = ScriptedTransport { request, number in
            let response = try await server.send(request)
            guard number == (hasDrained ? 1 : 0) else {
                if number == 0 { try Self.insert("f", path) }
                return response
            }
            try await other.attach("abc", server: Device.url, options: Self.later(server))
            switch reset {
            case .detachment:
                try await other.detach(discardingUnsent: true)
                try await other.attach("abc", server: Device.url, options: Self.later(server))
            case .revocation:
                server.state.withLock { $0.links = [] }
                try await other.sync()
                server.state.withLock { $0.links = ["bob"] }
            case .incompleteRow:
                let database = try Database(path: path)
                try database.execute(
                    """
                    INSERT INTO weir_applying (active) VALUES (1);
                    DELETE FROM item WHERE id = 'a';
                    DELETE FROM weir_applying;
                    DELETE FROM weir_row_1 WHERE id = 'a';
                    INSERT INTO weir_meta (key, value) VALUES ('pull_again', 1);
                    """)
                database.close()
                let lost = Self.broken(server, after: 1)
                try await other.attach("abc", server: Device.url, options: Self.later(lost))
                await #expect(throws: SyncError.self) { try await other.sync() }
            }
            return response
        }
        try await device.attach(transport)
        try await device.weir.sync()
        let rows = ["a A -", "b B -", "c C -", "d D -"] + (hasDrained ? ["e e -", "f f -"] : [])
        #expect(try device.rows() == rows)
        #expect(try device.states().count == rows.count)
        await other.close()
    }

    /// Of an owner whose rows are those of tables that the app does not have.
    @Test func anAnswerFromBeforeARevocationLosesNoWaitingRows() async throws {
        let (device, server) = try await Self.synced()
        server.state.withLock { $0.links = ["eve"] }
        try await device.weir.sync()
        let waiting = "SELECT id FROM weir_parked ORDER BY id"
        #expect(try device.rows(waiting) == ["t"])
        server.write("tag", "u", ["title": "U"], owner: "eve")
        let other = try await device.otherWeir()
        try await device.attach(
            Self.network(server) {
                server.state.withLock { $0.links = [] }
                try await other.attach("abc", server: Device.url, options: Self.later(server))
                try await other.sync()
                server.state.withLock { $0.links = ["eve"] }
            })
        try await device.weir.sync()
        #expect(try device.rows(waiting) == ["t", "u"])
        await other.close()
    }

    private static func insert(_ id: String, _ path: String) throws {
        let database = try Database(path: path)
        try database.run("INSERT INTO item VALUES (?1, ?1, NULL)", [.text(id)])
        database.close()
    }

    @Test func anAnswerFromBeforeARefusedBatchDoesNotEndThePullThatFollowsIt() async throws {
        let (device, server) = try await Self.synced()
        let other = try await device.otherWeir()
        let path = device.folder.file()
        let transport = Self.network(server) {
            try Self.insert("new", path)
            server.state.withLock { $0.refusal = "schema_changed" }
            let lost = Self.broken(server, after: 1)
            try await other.attach("abc", server: Device.url, options: Self.later(lost))
            await #expect(throws: SyncError.self) { try await other.sync() }
        }
        try await device.attach(transport)
        try await device.weir.sync()
        #expect(transport.requests.map(\.url.path) == ["/v1/pull", "/v1/pull", "/v1/sync"])
        #expect(server.live.count == 6)
        await other.close()
    }
}
