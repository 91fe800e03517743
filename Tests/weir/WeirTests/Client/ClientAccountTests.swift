import Foundation
import Testing
import WeirClient

/// Apps with `WeirClient` whose accounts change, against a running server: links that end, logging out, another account.
@Suite(.timeLimit(.minutes(5))) struct ClientAccountTests {
    private static let sql = """
        CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT);
        CREATE TABLE item (
            id TEXT PRIMARY KEY NOT NULL, title TEXT, list_id TEXT REFERENCES list (id) ON DELETE CASCADE)
        """
    private static let rows = """
        SELECT 'list ' || id || ' ' || name FROM list
        UNION ALL SELECT 'item ' || id || ' ' || title || ' ' || ifnull(list_id, '-') FROM item ORDER BY 1
        """

    private let folder: TestFolder

    init() throws {
        folder = try TestFolder()
        try folder.write(
            """
            tables:
              list:
                columns:
                  name: text
              item:
                columns:
                  title: text
                  list_id: { type: text, references: list }
            """, to: "schema.yaml")
    }

    private func withServer(
        _ settings: [String: String] = [:], _ body: (WeirProcess) async throws -> Void
    ) async throws {
        let weir = try await WeirProcess.start(schema: folder.path + "/schema.yaml", in: folder, settings: settings)
        try await body(weir)
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }

    private func app(_ name: String, of account: String) async throws -> ClientApp {
        try await ClientApp(name, account: account, in: folder, Self.sql, tables: ["list", "item"])
    }

    /// Attaches an app's file to an account, as the device that the file names.
    private func attach(_ app: ClientApp, to account: String, _ weir: WeirProcess) async throws -> AttachOutcome {
        try await app.weir.attach(account, server: ClientApp.url(weir.port))
    }

    /// A token of an account, with the owners to whom it is linked.
    private func token(_ account: String, _ links: String...) async throws -> String {
        let run = try await CommandRun.run(
            ["token", "create", account, "--auth.secret-file", "secret"] + (links.isEmpty ? [] : ["--links"] + links),
            in: folder)
        #expect(run.code == 0, "\(run.errors)")
        return run.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    @Test func aLinkThatEndsTakesTheOwnersRowsAndLeavesWhatWasNotSent() async throws {
        try folder.write(String(repeating: "s", count: 32), to: "secret")
        try await withServer(["auth.method": "jwt", "auth.secret-file": folder.path + "/secret"]) { weir in
            let ada = try await app("ada", of: "ada")
            let bob = try await app("bob", of: "bob")
            let (adas, linked, unlinked) = (
                try await token("ada"), try await token("bob", "ada:write"), try await token("bob")
            )
            // A token is used as long as it is valid, or until the file is attached again.
            func attachBob(_ token: String) async throws {
                try await bob.weir.attach("bob", server: ClientApp.url(weir.port)) { token }
            }
            try await ada.weir.attach("ada", server: ClientApp.url(weir.port)) { adas }
            try await attachBob(linked)
            try ada.run("INSERT INTO list VALUES ('l', 'Home'); INSERT INTO item VALUES ('i', 'Milk', 'l')")
            try await ada.weir.sync()
            try bob.run("INSERT INTO list VALUES ('own', 'Work')")
            try await bob.weir.sync()
            #expect(Set(bob.weir.currentStatus.owners.map(\.syncID)) == ["ada", "bob"])
            // A row below another owner's is that owner's.
            try bob.run("INSERT INTO item VALUES ('j', 'Bread', 'l')")
            try await bob.weir.sync()
            try await ada.weir.sync()
            let theirs = ["item i Milk l", "item j Bread l", "list l Home"]
            #expect(try ada.rows(Self.rows) == theirs)

            try bob.run(
                "UPDATE item SET title = 'Oat milk' WHERE id = 'i'; INSERT INTO item VALUES ('k', 'Tea', 'own')")
            try await attachBob(unlinked)
            try await bob.weir.sync()
            #expect(try bob.rows(Self.rows) == ["item k Tea own", "list own Work"])
            #expect(bob.weir.currentStatus.owners == [Owner(syncID: "bob", access: .write)])
            #expect(bob.weir.currentStatus.needsAttention == [.keptEdits(1)])
            let kept = try #require(try await bob.weir.keptEdits().first)
            #expect(kept.code == "revoked" && kept.table == "item" && kept.key == .text("i"), "\(kept)")
            #expect(kept.local["title"] == .text("Oat milk"))
            try await ada.weir.sync()
            #expect(try ada.rows(Self.rows) == theirs)

            // Granted again, everything comes back, and the edit can be made again.
            try await attachBob(linked)
            try await bob.weir.sync()
            #expect(try bob.rows(Self.rows).count == 5)
            #expect(try await bob.weir.resolve(kept, .keepLocal).value)
            try await bob.weir.sync()
            try await ada.weir.sync()
            #expect(try ada.rows(Self.rows) == ["item i Oat milk l", "item j Bread l", "list l Home"])
            #expect(
                try bob.rows(Self.rows) == [
                    "item i Oat milk l", "item j Bread l", "item k Tea own", "list l Home", "list own Work",
                ])
        }
    }

    /// Where the first request has the edits, it is the server that does not store them.
    @Test func anEditThatIsSentAfterItsLinkHasEndedIsRefused() async throws {
        try await withServer { weir in
            let ada = try await app("ada", of: "ada")
            let bob = try await app("bob", of: "bob")
            try await ada.attach(weir.port)
            try ada.run("INSERT INTO list VALUES ('l', 'Home')")
            try await ada.weir.sync()
            try await bob.attach(weir.port, links: ["ada": .write])
            try await bob.weir.sync()
            try bob.run("UPDATE list SET name = 'House'")
            try await bob.attach(weir.port)
            try await bob.weir.sync()
            #expect(try bob.rows(Self.rows).isEmpty)
            let kept = try await bob.weir.keptEdits()
            #expect(kept.map(\.code) == ["not_granted"])
            #expect(kept.first?.local["name"] == .text("House"))
            try await ada.weir.sync()
            #expect(try ada.rows(Self.rows) == ["list l Home"])
        }
    }

    @Test func anAccountLogsOutOfAFileAndAnotherOneLogsIn() async throws {
        try await withServer { weir in
            let app = try await app("shared", of: "-")
            #expect(try await attach(app, to: "ada", weir) == .startedEmpty)
            try app.run("INSERT INTO list VALUES ('l', 'Home')")
            await #expect(throws: WeirError.unsent(rows: 1, keptEdits: 0)) { try await app.weir.detach() }
            await #expect(throws: WeirError.otherAccount(attached: "ada")) {
                _ = try await attach(app, to: "bob", weir)
            }
            try await app.weir.sync()
            let name = try await app.weir.knowledgeID()
            try await app.weir.detach()
            #expect(try app.rows(Self.rows).isEmpty)

            #expect(try await attach(app, to: "bob", weir) == .startedEmpty)
            try app.run("INSERT INTO list VALUES ('l', 'Work'); INSERT INTO item VALUES ('i', 'Call', 'l')")
            try await app.weir.sync()
            try await app.weir.detach()

            // Each finds its own rows, as a new device.
            #expect(try await attach(app, to: "ada", weir) == .usedRemote)
            try await app.weir.sync()
            #expect(try app.rows(Self.rows) == ["list l Home"])
            #expect(try await app.weir.knowledgeID() != name)
            try app.run("INSERT INTO item VALUES ('i', 'Milk', 'l')")
            try await app.weir.sync()
            let fresh = try await self.app("fresh", of: "bob")
            #expect(try await attach(fresh, to: "bob", weir) == .usedRemote)
            try await fresh.weir.sync()
            #expect(try fresh.rows(Self.rows) == ["item i Call l", "list l Work"])
        }
    }

    @Test func eachAccountGoesOnInAFileOfItsOwn() async throws {
        try await withServer { weir in
            for round in 1...3 {
                for account in ["ada", "bob"] {
                    let app = try await app(account, of: account)
                    try app.run("INSERT INTO list VALUES ('\(round)', '\(account)')")
                    #expect(try await attach(app, to: account, weir) == (round == 1 ? .seededFromLocal : .resumed))
                    // Not sent before the other account's turn.
                    if round != 2 { try await app.weir.sync() }
                    #expect(try app.rows(Self.rows) == (1...round).map { "list \($0) \(account)" })
                    await app.weir.close()
                }
            }
            for account in ["ada", "bob"] {
                let fresh = try await app("fresh \(account)", of: account)
                _ = try await attach(fresh, to: account, weir)
                try await fresh.weir.sync()
                #expect(try fresh.rows(Self.rows) == (1...3).map { "list \($0) \(account)" })
            }
        }
    }

    /// The parents were written last, so a new device gets each child some pages before its parent.
    @Test func parentsAndChildrenCrossPagesAndBatches() async throws {
        try await withServer { weir in
            let phone = try await app("phone", of: "ada")
            let laptop = try await app("laptop", of: "ada")
            try await phone.attach(weir.port)
            try phone.run(
                """
                WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
                INSERT INTO list SELECT 'l' || i, 'L' || i FROM n;
                INSERT INTO item SELECT 'i' || substr(id, 2), 'T', id FROM list
                """)
            try await phone.weir.sync()
            try phone.run("UPDATE list SET name = name || '+'")
            try await phone.weir.sync()
            try await laptop.attach(weir.port)
            try await laptop.weir.sync()
            #expect(try laptop.rows(Self.rows) == phone.rows(Self.rows))
            #expect(try laptop.rows("SELECT count(*) FROM item JOIN list ON list.id = list_id") == ["6000"])
            #expect(try await laptop.weir.parkedRows().isEmpty)
            // And away again, with what has been added below them meanwhile.
            try laptop.run("INSERT INTO item VALUES ('late', 'T', 'l1')")
            try phone.run("DELETE FROM list")
            for app in [phone, laptop, phone, laptop] { try await app.weir.sync() }
            #expect(try phone.rows(Self.rows) == laptop.rows(Self.rows))
            #expect(try phone.rows("SELECT count(*) FROM list") == ["0"])
        }
    }
}
