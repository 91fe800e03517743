import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Several accounts on one device: each with a file of its own, or one file that another process attaches to another account.
@Suite struct SwitchingTests {
    private static func otherServer() -> ContractServer {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.syncID = "xyz" }
        return server
    }

    @Test func anAccountContinuesInItsOwnFileAfterAnotherOneWasUsed() async throws {
        let (server, next) = (ContractServer(Device.tables), Self.otherServer())
        let first = try await Device.synced(server)
        try first.run("UPDATE item SET title = 'mine' WHERE id = 'a'; DELETE FROM item WHERE id = 'b'")
        await first.weir.close()
        server.write("item", "c", ["title": "theirs"])

        let second = try await Device()
        #expect(
            try await second.weir.attach("xyz", server: Device.url, options: Device.options(next)) == .startedEmpty)
        try second.run("INSERT INTO item VALUES ('x', 'X', NULL)")
        try await second.weir.sync()
        await second.weir.close()

        let requests = server.requests.count
        try await first.restart()
        #expect(try await first.attach(server) == .resumed)
        #expect(server.requests.count == requests)
        #expect(try await first.weir.pendingRows() == 2)
        try await first.weir.sync()
        #expect(try first.rows() == ["a mine -", "c theirs -"])
        #expect(server.live.map { $0.prefix(6) } == ["item a", "item c"])
        #expect(next.live.map { $0.prefix(6) } == ["item x"])
    }

    @Test(arguments: [false, true], [false, true]) func aProcessSendsNothingOfTheNextAccountWithItsOwnToken(
        hasTokens: Bool, isFrozen: Bool
    ) async throws {
        let (server, next) = (ContractServer(Device.tables), Self.otherServer())
        let device = try await Device.synced(server)
        if hasTokens {
            try await device.weir.attach("abc", server: Device.url, options: Device.options(server)) { "abc" }
            try await device.weir.sync()
        }
        let process = try await device.otherWeir()
        try await process.detach()
        try await process.attach("xyz", server: Device.url, options: Device.options(next))
        try await process.sync()
        try device.run("INSERT INTO item VALUES ('secret', 'S', NULL)")
        if isFrozen {
            let lost = FaultyTransport(next, .lostRequest, at: 0)
            try await process.attach("xyz", server: Device.url, options: Device.options(lost))
            await #expect(throws: SyncError.self) { try await process.sync() }
        }
        let count = server.requests.count
        let error = await #expect(throws: SyncError.self) { try await device.weir.sync() }
        #expect(error?.kind == .otherAccount)
        #expect(device.weir.currentStatus.needsAttention == [.otherAccount])
        #expect(server.requests.count == count)
        #expect(server.live.count == 2)
        try await process.attach("xyz", server: Device.url, options: Device.options(next))
        try await process.sync()
        #expect(next.live == [#"item secret {"note":null,"title":"S"} 1"#])
        // It syncs again as soon as it has the account, too.
        try await device.weir.attach("xyz", server: Device.url, options: Device.options(next))
        try await device.weir.sync()
        #expect(device.weir.currentStatus.needsAttention.isEmpty)
    }

    @Test func aProcessSendsNothingOfAFileThatAnotherOneHasDetached() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        let process = try await device.otherWeir()
        try await process.detach(.keep)
        try device.run("INSERT INTO item VALUES ('nobodys', 'N', NULL)")
        let count = server.requests.count
        let error = await #expect(throws: SyncError.self) { try await device.weir.sync() }
        #expect(error?.kind == .otherAccount)
        #expect(server.requests.count == count)
        #expect(try await process.pendingRows() == 1)
    }

    @Test func aProcessDoesNotDetachTheNextAccount() async throws {
        let next = Self.otherServer()
        let device = try await Device.synced(ContractServer(Device.tables))
        let process = try await device.otherWeir()
        try await process.detach()
        try await process.attach("xyz", server: Device.url, options: Device.options(next))
        try device.run("INSERT INTO item VALUES ('x', 'X', NULL)")
        await #expect(throws: WeirError.otherAccount(attached: "xyz")) {
            try await device.weir.detach(discardingUnsent: true)
        }
        try await process.sync()
        #expect(next.live.count == 1)
    }

    enum Next: CaseIterable, Sendable {
        case otherAccount
        /// The rows were removed, and the vector was reset, before the session began.
        case otherAccountOfARemovedOne
        case sameAccount
    }

    /// Switches a file to the next account, in which the app then writes a row.
    private struct Switch {
        let file: ClientFile
        private let next: Next
        /// After how many statements of the other connections; `nil`: these are not counted yet.
        var first: Int?
        private var count = 0
        /// After how many it was possible.
        private(set) var last: Int?

        init(_ path: String, to next: Next) throws {
            file = try ClientFile(path: path, tables: ["item"])
            self.next = next
            // The connection that is traced waits meanwhile.
            try file.database.execute("PRAGMA busy_timeout = 0")
            if next == .otherAccountOfARemovedOne { try remove() }
        }

        private var detaching: Detaching { Detaching(file: file, rows: .remove, discardsUnsent: true) }

        private func remove() throws {
            try detaching.begin()
            while try detaching.removeNextRows() {}
        }

        mutating func statement() {
            guard let first, last == nil else { return }
            defer { count += 1 }
            if count < first { return }
            do {
                if next != .otherAccountOfARemovedOne { try remove() }
                try detaching.end()
                let name = next == .sameAccount ? "abc" : "xyz"
                try SessionRecord(database: file.database).attach(name, syncID: name)
                try file.database.run("INSERT INTO item VALUES ('secret', 'S', NULL)")
                last = count
            } catch {
                // The traced connection has the write lock: after its transaction.
            }
        }
    }

    /// A process may be stopped at any place, until its lease has run out.
    @Test(arguments: Next.allCases)
    func aProcessThatWasStoppedAnywhereInASessionSendsAndWritesNothingOfAnotherAccount(next: Next) async throws {
        var first = 0
        var switches = 0
        while true {
            let server = ContractServer(Device.tables)
            let device = try await Device.synced(server)
            for id in ["c", "d"] { server.write("item", id, ["title": "theirs"]) }
            let path = device.folder.file()
            let other = Mutex(try Switch(path, to: next))
            // The statements of the switch are traced as well.
            StatementTrace.begin(path) { _ = other.withLockIfAvailable { $0.statement() } }
            try await device.restart()
            try await device.attach(server)
            other.withLock { $0.first = first }
            do { try await device.weir.sync() } catch is SyncError {}
            StatementTrace.end(path)
            // If it was stopped after the session's end.
            if next == .sameAccount { try await device.weir.sync() }
            await device.weir.close()
            let secrets = server.requests.map { String(decoding: $0.body, as: UTF8.self) }
                .filter { $0.contains("secret") }
            other.withLock { $0.file.database.close() }
            guard let last = other.withLock({ $0.last }) else { break }
            let comment = Comment("after \(first) statements")
            if next == .sameAccount {
                // It is another device from then on.
                let name = try #require(try device.rows("SELECT value FROM weir_meta WHERE key = 'knowledge_id'").first)
                #expect(secrets.allSatisfy { $0.contains(name) }, comment)
                #expect(try device.rows() == ["a A -", "b B -", "c theirs -", "d theirs -", "secret S -"], comment)
            } else {
                #expect(secrets.isEmpty, comment)
                try expectNothingOfTheAccountBefore(device, hasRows: next != .otherAccount, comment)
            }
            first = last + 1
            switches += 1
        }
        #expect(switches > 50)
    }

    /// - Parameter hasRows: whether rows that had come before the switch stay.
    private func expectNothingOfTheAccountBefore(_ device: Device, hasRows: Bool, _ comment: Comment) throws {
        if !hasRows { #expect(try device.rows() == ["secret S -"], comment) }
        let known = try device.rows(
            """
            SELECT sync_id FROM weir_vector UNION ALL SELECT sync_id FROM weir_grant UNION ALL SELECT id FROM weir_row_1
            """)
        #expect(known.isEmpty, comment)
        let meta = try device.rows(
            """
            SELECT key FROM weir_meta WHERE key NOT GLOB 'lease_*' AND key NOT GLOB 'last_*' AND key <> 'resets' ORDER BY key
            """)
        #expect(meta == ["account", "format", "sync_id"], comment)
    }

    /// They often hold the app's objects, and these the Weir.
    @Test func closingReleasesTheClosuresOfTheAttachment() async throws {
        final class Login: Sendable {}
        let device = try await Device()
        var login: Login? = Login()
        weak let held = login
        let options = Device.options(ContractServer(Device.tables))
        try await device.weir.attach("abc", server: Device.url, options: options) { [login] in "\(login == nil)" }
        login = nil
        #expect(held != nil)
        await device.weir.close()
        #expect(held == nil)
        await #expect(throws: WeirError.closed) { try await device.weir.sync() }
    }
}
