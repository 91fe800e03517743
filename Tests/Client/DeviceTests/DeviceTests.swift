import Foundation
import ProgramRun
import Testing
import WeirClient

/// The program `weir-device`, as a person and a script use it.
@Suite struct DeviceTests {
    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    private static let schema = """
        tables:
          list:
            columns:
              title: { type: text, nullable: false, length: 20 }
          task:
            columns:
              list: { type: text, references: list }
              title: { type: text, nullable: false }
              done: { type: boolean, nullable: false, default: false }
              due: timestamp
              count: integer
              labels: json
              picture: bytes
        """

    private func withServer(_ schema: String = Self.schema, _ body: (_ url: String) async throws -> Void) async throws {
        try await EmbeddedServer.run(in: folder, schema, body)
    }

    private func run(
        _ arguments: String..., file: String = "phone.sqlite", environment: [String: String] = [:]
    ) async throws -> CommandRun {
        try await CommandRun.run(
            arguments + ["--file", file], of: .device, in: folder, environment: environment)
    }

    private func succeed(
        _ arguments: String..., file: String = "phone.sqlite", environment: [String: String] = [:]
    ) async throws -> String {
        let run = try await CommandRun.run(
            arguments + ["--file", file], of: .device, in: folder, environment: environment)
        #expect(run.code == 0, "\(arguments): \(run.output)\(run.errors)")
        return run.output
    }

    private func json(_ text: String) throws -> JSON {
        JSON(try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed))
    }

    // MARK: A person

    @Test func aRowThatIsWrittenOfflineReachesAnotherDevice() async throws {
        try await withServer { url in
            let environment = ["SYNC_SERVER": url, "SYNC_ID": "ada"]
            _ = try await succeed("list", environment: environment)
            _ = try await succeed("list", file: "tablet.sqlite", environment: environment)
        }
        // The server is down.
        let written = try await succeed("put", "task", "t1", "title=Buy milk", "done=true", "count=3")
        #expect(written.contains("1 row is pending"))
        #expect(try await succeed("list", "task").contains("*  t1"))
        let failed = try await run("sync")
        #expect(failed.code == 1)
        #expect(failed.errors.contains("1 row is pending"), "\(failed.errors)")
        try await withServer { url in
            // It has another port now.
            #expect(try await succeed("sync", "--server", url).contains("Nothing is pending."))
            #expect(try await succeed("status").contains("account ada at \(url)"))
            _ = try await succeed("sync", "--server", url, file: "tablet.sqlite")
            #expect(try await succeed("list", "task", file: "tablet.sqlite").contains("t1  -     Buy milk  true"))
            _ = try await succeed("edit", "task", "t1", "title=Buy bread", "count", file: "tablet.sqlite")
            _ = try await succeed("sync", file: "tablet.sqlite")
            _ = try await succeed("sync")
            let rows = try json(try await succeed("list", "task", "--json"))
            #expect(rows[0]["title"] == "Buy bread" && rows[0]["count"].isNull)
            _ = try await succeed("delete", "task", "t1")
            _ = try await succeed("sync")
            _ = try await succeed("sync", file: "tablet.sqlite")
            #expect(try json(try await succeed("list", "task", "--json", file: "tablet.sqlite")) == [])
        }
    }

    @Test func whatTheServerDoesNotStoreIsReportedWithItsReason() async throws {
        try await withServer { url in
            _ = try await succeed(
                "put", "list", "l1", "title=longer than twenty characters", "--server", url, "--sync-id", "ada")
            let sync = try await run("sync")
            #expect(sync.code == 1)
            #expect(sync.output.contains("list l1: invalid_value: title takes at most 20 characters"), "\(sync.output)")
            let status = try json(try await succeed("status", "--json", "--forget"))
            #expect(status["notStored"][0]["code"] == "invalid_value" && status["pending"] == [])
            // The row is in the file alone, and nothing else names it.
            #expect(try json(try await succeed("status", "--json"))["notStored"] == status["notStored"])
            // The next change creates the row.
            _ = try await succeed("edit", "list", "l1", "title=short")
            _ = try await succeed("sync")
            #expect(try json(try await succeed("status", "--json"))["notStored"] == [])
            // One of a row that the server has is forgotten.
            _ = try await succeed("edit", "list", "l1", "title=longer than twenty characters")
            #expect(try await run("sync").code == 1)
            _ = try await succeed("status", "--forget")
            #expect(try json(try await succeed("status", "--json"))["notStored"] == [])
        }
    }

    @Test func variablesOfTheEnvironmentDoNotMoveAFileThatRemembersItsServer() async throws {
        try await withServer { url in
            _ = try await succeed("put", "list", "l1", "title=Home", "--server", url, "--sync-id", "ada")
            let environment = ["SYNC_SERVER": "http://127.0.0.1:1", "SYNC_ID": "eve"]
            #expect(try await succeed("sync", environment: environment).contains("Nothing is pending."))
            #expect(try await succeed("status", environment: environment).contains("account ada at \(url)"))
        }
    }

    @Test func whatOthersHaveWrittenDoesNothingToTheTerminal() async throws {
        try await withServer { url in
            let written = try await succeed(
                "put", "list", "l1", "title=a\u{1B}[2J\nb\u{9B}", "--server", url, "--sync-id", "ada")
            #expect(written.hasPrefix("list l1: title=a\\u{1B}[2J\\nb\\u{009B}\n"), "\(written)")
            #expect(try await succeed("list").contains("*  l1  a\\u{1B}[2J\\nb\\u{009B}\n"))
            let rows = try json(try await succeed("list", "list", "--json"))
            #expect(rows[0]["title"] == "a\u{1B}[2J\nb\u{9B}")
        }
    }

    @Test func discardTakesBackAChange() async throws {
        try await withServer { url in
            _ = try await succeed("put", "list", "l1", "title=Home", "--server", url, "--sync-id", "ada")
            _ = try await succeed("sync")
            _ = try await succeed("edit", "list", "l1", "title=House")
            #expect(try await succeed("discard", "list", "l1").contains("title=Home\nNothing is pending."))
            #expect(try await run("discard", "list", "l1").code == 1)
        }
    }

    @Test func watchPrintsWhatOthersWrite() async throws {
        try await withServer { url in
            let environment = ["SYNC_SERVER": url, "SYNC_ID": "ada"]
            let watch = try WatchedProgram(["watch", "--file", "tablet.sqlite"], of: .device, in: folder, environment)
            _ = try await succeed("put", "list", "l1", "title=Home", environment: environment)
            _ = try await succeed("sync")
            #expect(await watch.line { $0 == "list l1: title=Home" })
            _ = try await succeed("delete", "list", "l1")
            _ = try await succeed("sync")
            #expect(await watch.line { $0 == "list l1: deleted" })
            #expect(await watch.stop() == 0)
        }
    }

    @Test func aFileWhoseCreationWasInterruptedIsCreatedByTheNextCommand() async throws {
        try folder.write("", to: "half.sqlite")
        let alone = try await run("list", file: "half.sqlite")
        #expect(alone.code == 1 && alone.errors.contains("name the server"), "\(alone.errors)")
        try await withServer { url in
            _ = try await succeed("list", "--server", url, "--sync-id", "ada", "--device", "pad", file: "half.sqlite")
            #expect(try await succeed("status", file: "half.sqlite").contains("account ada at \(url)"))
        }
    }

    @Test func aSyncWaitsForThatOfAnotherProcessAndSaysSo() async throws {
        try await withServer { url in
            _ = try await succeed("put", "list", "l1", "title=Home", "--server", url, "--sync-id", "ada")
            let database = try Database(path: folder.path + "/phone.sqlite")
            defer { database.close() }
            let lease = Lease(holder: "another")
            try lease.take(in: database, now: Date())
            let sync = try WatchedProgram(["sync", "--file", "phone.sqlite"], of: .device, in: folder)
            #expect(await sync.line { $0.contains("Another process syncs") })
            try lease.release(in: database)
            #expect(await sync.exit() == 0)
            #expect(try await succeed("status").contains("Nothing is pending."))
        }
    }

    // MARK: Scripts

    @Test func valuesOfEveryTypeKeepTheirTypesInJSON() async throws {
        try await withServer { url in
            let written = try json(
                try await succeed(
                    "put", "task", "-", "title=a", "done=true", "due=2026-01-02T03:04:05Z", "count=-3",
                    #"labels={"a":[1]}"#, "picture=AAEC", "--json", "--server", url, "--sync-id", "ada"))
            let id = try #require(written["id"].string)
            #expect(UUID(uuidString: id) != nil)
            #expect(
                written["row"]
                    == [
                        "id": JSON(id as Any), "list": nil, "title": "a", "done": true, "due": "2026-01-02T03:04:05Z",
                        "count": -3, "labels": ["a": [1]], "picture": "AAEC",
                    ])
            _ = try await succeed("sync")
            _ = try await succeed("sync", "--server", url, "--sync-id", "ada", file: "tablet.sqlite")
            let rows = try json(try await succeed("list", "--json", file: "tablet.sqlite"))
            #expect(rows["task"][0] == written["row"].with("due", "2026-01-02T03:04:05.000000Z"))
        }
    }

    @Test func aColumnThatTheServerGainsIsAddedWithTheNextSync() async throws {
        try await withServer("tables: { list: { columns: { title: text } } }") { url in
            _ = try await succeed("put", "list", "l1", "title=Home", "--server", url, "--sync-id", "ada")
        }
        try await withServer(
            "tables: { list: { columns: { title: text, color: text } }, more: { columns: { n: integer } } }"
        ) {
            url in
            _ = try await succeed("sync", "--server", url)
            _ = try await succeed("edit", "list", "l1", "color=red")
            _ = try await succeed("put", "more", "m1", "n=1")
            _ = try await succeed("sync")
        }
    }

    @Test func callsThatCannotBeCarriedOutSayWhy() async throws {
        #expect(try await run("list").code == 1)
        try await withServer { url in
            _ = try await succeed("list", "--server", url, "--sync-id", "ada")
            for (arguments, text) in [
                (["put", "tasks", "t1", "title=a"], "the tables are list, task"),
                (["put", "task", "t1", "titel=a"], "its columns are list, title"),
                (["put", "task", "t1", "count=many"], "count is a whole number, not many"),
                (["put", "task", "t1", "done=maybe"], "done is true or false, not maybe"),
                (["put", "task", "t1", "title=a", "title=b"], "title is given twice"),
                (["put", "task", "t1", "count=1"], "a new row of task needs title"),
                (["sync", "--server", "nowhere"], "--server is a URL"),
                (["sync", "--sync-id", "ada", "--token", "t"], "give one of"),
            ] {
                let run = try await CommandRun.run(
                    arguments + ["--file", "phone.sqlite"], of: .device, in: folder)
                #expect(run.code == 64 && run.errors.contains(text), "\(arguments): \(run.code) \(run.errors)")
            }
            #expect(try await run("edit", "task", "t1", "title=a").code == 1)
            for arguments in [["sync"], ["put", "list", "l1", "title=Home"]] {
                let other = try await CommandRun.run(
                    arguments + ["--sync-id", "eve", "--file", "phone.sqlite"], of: .device, in: folder)
                #expect(other.code == 1 && other.errors.contains("attached to the account ada"), "\(other.errors)")
            }
        }
        let foreign = try folder.write("", to: "other.sqlite")
        try Database(path: foreign).execute("CREATE TABLE note (id)")
        #expect(try await run("list", file: foreign).errors.contains("a database of another program"))
    }
}
