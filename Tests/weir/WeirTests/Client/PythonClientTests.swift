import Foundation
import Fuzzing
import Testing

/// The client of docs/clients.md, in Python: it proves that the contract and the fixtures are enough to write one.
@Suite(.timeLimit(.minutes(5))) struct PythonClientTests {
    private static let clients = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "docs/clients")
    private static let schema = clients.appending(path: "schema.yaml").path

    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    private func start(_ settings: [String: String] = [:]) async throws -> WeirProcess {
        try await WeirProcess.start(schema: Self.schema, in: folder, settings: settings)
    }

    /// Runs a program below docs/clients, which leaves no compiled files there.
    private func python(_ program: String, _ arguments: [String]) async throws -> CommandRun {
        let path = program.hasPrefix("/") ? program : Self.clients.appending(path: program).path
        return try await CommandRun.tool(["python3", "-B", path] + arguments, in: folder)
    }

    // MARK: Fixtures

    struct Fixture: CustomTestStringConvertible, Sendable {
        let path: String
        let json: JSON
        var testDescription: String { path.split(separator: "/").last.map(String.init) ?? path }

        static let all: [Fixture] = {
            do {
                let folder = PythonClientTests.clients.appending(path: "fixtures")
                return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map { name in
                    let file = folder.appending(path: name)
                    return Fixture(
                        path: file.path, json: JSON(try JSONSerialization.jsonObject(with: Data(contentsOf: file))))
                }
            } catch {
                preconditionFailure("docs/clients/fixtures cannot be read: \(error)")
            }
        }()
        static let answeredByServers = all.filter { $0.json["server"] == "real" }
    }

    @Test func theClientPlaysEveryFixture() async throws {
        let servers = Set(Fixture.all.map(\.json["server"].description))
        #expect(servers == [#""real""#, #""scripted""#])
        let run = try await python("play.py", Fixture.all.map(\.path))
        #expect(run.code == 0, "\(run.output)\(run.errors)")
    }

    @Test(arguments: Fixture.answeredByServers) func aServerAnswersAsTheFixtureSays(_ fixture: Fixture) async throws {
        let settings = fixture.json["settings"].object.compactMapValues(\.string)
        let weir = try await start(["clock": "sequence(100)", "partitions": "1"].merging(settings) { $1 })
        let run = try await python("play.py", ["--server", "http://127.0.0.1:\(weir.port)", fixture.path])
        #expect(run.code == 0, "\(run.output)\(run.errors)")
        #expect(await weir.stop() == 0)
    }

    @Test func theDocumentNamesEveryFixture() throws {
        let document = try String(
            contentsOf: Self.clients.deletingLastPathComponent().appending(path: "clients.md"), encoding: .utf8)
        let linked = Set(document.matches(of: /\(clients\/fixtures\/([^)]*)\)/).map { String($0.output.1) })
        #expect(linked == Set(Fixture.all.map(\.testDescription)))
    }

    // MARK: Devices

    /// Runs a command of a device, whose file is in the test's folder.
    private func run(_ device: String, _ weir: WeirProcess, _ command: [String]) async throws -> CommandRun {
        try await python("weir_client.py", ["\(device).sqlite", "http://127.0.0.1:\(weir.port)", "ada"] + command)
    }

    private func expect(_ device: String, _ weir: WeirProcess, _ command: String...) async throws {
        let run = try await run(device, weir, command)
        #expect(run.code == 0, "\(device) \(command): \(run.errors)")
    }

    private func shown(_ device: String, _ weir: WeirProcess, _ command: String...) async throws -> JSON {
        let run = try await run(device, weir, command)
        #expect(run.code == 0, "\(device) \(command): \(run.errors)")
        return JSON(try JSONSerialization.jsonObject(with: Data(run.output.utf8)))
    }

    @Test func editsMadeOfflineConvergeBesideAConflict() async throws {
        var weir = try await start()
        try await expect("phone", weir, "put", "person", "p1", #"{"name": "Ada"}"#)
        try await expect("phone", weir, "put", "seat", "12A", #"{"holder": "Ada"}"#)
        for device in ["phone", "laptop"] { try await expect(device, weir, "sync") }
        #expect(await weir.stop() == 0)
        try await expect("phone", weir, "put", "person", "p1", #"{"email": "ada@example.org"}"#)
        try await expect("phone", weir, "put", "seat", "12A", #"{"holder": "Grace"}"#)
        try await expect("laptop", weir, "put", "person", "p1", #"{"color": "red"}"#)
        try await expect("laptop", weir, "put", "seat", "12A", #"{"holder": "Alan"}"#)
        let offline = try await run("phone", weir, ["sync"])
        #expect(offline.code == 1 && offline.errors.contains("no complete answer"), "\(offline.errors)")
        weir = try await start()
        for device in ["phone", "laptop", "phone"] { try await expect(device, weir, "sync") }
        for device in ["phone", "laptop"] {
            let person = try await shown(device, weir, "rows", "person")
            #expect(person == ["p1": ["name": "Ada", "email": "ada@example.org", "color": "red"]], "\(device)")
            #expect(try await shown(device, weir, "rows", "seat") == ["12A": ["holder": "Grace"]], "\(device)")
            #expect(try await shown(device, weir, "pending") == [], "\(device)")
        }
        #expect(try await shown("phone", weir, "aside") == [])
        let aside = try await shown("laptop", weir, "aside")[0]
        #expect(aside["code"] == "conflict" && aside["values"] == ["holder": "Alan"])
        #expect(aside["row"]["values"] == ["holder": "Grace"])
        try await expect("laptop", weir, "resend", "1")
        for device in ["laptop", "phone"] { try await expect(device, weir, "sync") }
        #expect(try await shown("phone", weir, "rows", "seat") == ["12A": ["holder": "Alan"]])
        #expect(try await shown("laptop", weir, "aside") == [])
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }

    @Test func aColumnThatIsNullIsToldFromOneThatTheRowLacks() async throws {
        let weir = try await start()
        try await expect("phone", weir, "put", "person", "p1", #"{"name": "Ada", "color": null}"#)
        #expect(try await shown("phone", weir, "rows", "person") == ["p1": ["name": "Ada", "color": nil]])
        for device in ["phone", "laptop"] { try await expect(device, weir, "sync") }
        let row: JSON = ["p1": ["name": "Ada", "email": nil, "color": nil]]
        #expect(try await shown("laptop", weir, "rows", "person") == row)
        #expect(await weir.stop() == 0)
    }

    @Test func devicesBringBackWhatANewHistoryOfTheServerLacks() async throws {
        var weir = try await start()
        try await expect("phone", weir, "put", "person", "p1", #"{"name": "Ada", "email": "ada@example.org"}"#)
        try await expect("phone", weir, "put", "seat", "12A", #"{"holder": "Ada"}"#)
        for device in ["phone", "laptop"] { try await expect(device, weir, "sync") }
        #expect(await weir.stop() == 0)
        try FileManager.default.removeItem(atPath: folder.path + "/data")
        try await expect("phone", weir, "put", "person", "p1", #"{"color": "red"}"#)
        weir = try await start()
        for device in ["phone", "laptop", "phone", "fresh"] { try await expect(device, weir, "sync") }
        for device in ["phone", "laptop", "fresh"] {
            let person = try await shown(device, weir, "rows", "person")
            #expect(person == ["p1": ["name": "Ada", "email": "ada@example.org", "color": "red"]], "\(device)")
            #expect(try await shown(device, weir, "rows", "seat") == ["12A": ["holder": "Ada"]], "\(device)")
            #expect(try await shown(device, weir, "aside") == [], "\(device)")
        }
        #expect(await weir.stop() == 0)
    }

    @Test func aFileWithOtherTablesIsRefusedAndUnchanged() async throws {
        let made = try await CommandRun.tool(
            [
                "python3", "-c",
                """
                import sqlite3
                sqlite3.connect("phone.sqlite").executescript(\"""
                CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);
                CREATE TABLE edit (seq INTEGER PRIMARY KEY, sent INTEGER, owner TEXT, tbl TEXT, id TEXT, deleted INTEGER,
                    vals TEXT, base INTEGER, at TEXT, UNIQUE (owner, tbl, id, sent));
                INSERT INTO edit VALUES (1, 0, '', 'person', 'p1', 0, '{"name": "Ada"}', NULL, '2026-01-02T03:04:05Z');
                \""")
                """,
            ], in: folder)
        #expect(made.code == 0, "\(made.errors)")
        let file = URL(filePath: folder.path + "/phone.sqlite")
        let before = try Data(contentsOf: file)
        for command in [["pending"], ["put", "person", "p2", #"{"name": "Grace"}"#], ["sync"]] {
            let run = try await python("weir_client.py", ["phone.sqlite", "http://127.0.0.1:1", "ada"] + command)
            #expect(run.code == 1)
            #expect(run.errors == "phone.sqlite has tables of layout 0, and this client those of layout 1\n")
        }
        #expect(try Data(contentsOf: file) == before)
    }

    /// Runs a script that imports the client.
    private func script(_ script: String, _ weir: WeirProcess, _ arguments: String...) async throws {
        let path = try folder.write(Self.imports + script, to: "script.py")
        let run = try await python(path, [Self.clients.path, "http://127.0.0.1:\(weir.port)"] + arguments)
        #expect(run.code == 0, "\(run.output)\(run.errors)")
    }

    private static let imports = """
        import json, os, random, signal, sys
        sys.path.insert(0, sys.argv[1])
        from weir_client import Client, SyncError, http_transport

        def device(name, transport=http_transport):
            return Client(name + ".sqlite", sys.argv[2], lambda: {"X-Sync-Id": "ada"}, transport)

        TABLES = "person", "seat", "note"

        def shown(d, table):  # a device that has created a row does not have the NULLs of others
            return {id: {c: v for c, v in vals.items() if v is not None} for id, vals in d.rows(table).items()}

        def expect_equal(devices):
            for _ in range(2):
                for d in devices:
                    d.sync()
            for table in TABLES:
                for d in devices:
                    assert shown(d, table) == shown(devices[0], table), (table, d.rows(table), devices[0].rows(table))
            for d in devices:
                assert d.pending() == [], d.pending()


        """

    /// The process is killed before each statement that a session runs, the commit of an answer's transaction included.
    @Test func aProcessKilledAtAnyStatementLosesNothingAndAppliesNothingTwice() async throws {
        let weir = try await start()
        try await script(
            """
            versions = {}

            def noting(*request):
                status, fields, text = http_transport(*request)
                versions.update({row["id"]: row["version"] for row in json.loads(text).get("changes", [])})
                return status, fields, text

            def is_killed(statement):
                child = os.fork()
                if child == 0:
                    phone, count = device("phone"), 0
                    def kill(_):
                        nonlocal count
                        count += 1
                        if count == statement:
                            os.kill(os.getpid(), signal.SIGKILL)
                    phone.db.set_trace_callback(kill)
                    phone.sync()
                    os._exit(0)
                status = os.waitpid(child, 0)[1]
                assert status in (0, signal.SIGKILL), status
                return status != 0

            laptop, statement, kills = device("laptop"), 0, 0
            while statement == kills:
                statement += 1
                phone = device("phone")
                phone.put("person", f"p{statement}", {"name": f"Name {statement}"})
                phone.put("person", "shared", {"name": f"Name {statement}"})
                phone.db.close()
                if statement > 1:
                    laptop.put("person", "shared", {"color": f"color {statement}"})
                    laptop.sync()
                kills += is_killed(statement)
                phone = device("phone")
                rows = phone.rows("person")
                phone.sync()
                phone.db.close()
                assert rows["shared"]["name"] == f"Name {statement}", rows["shared"]
                assert set(rows) >= {f"p{n}" for n in range(1, statement + 1)}, rows
            assert kills > 50, kills
            phone, fresh = device("phone"), device("fresh", noting)
            expect_equal([phone, laptop, fresh])
            assert phone.aside() == laptop.aside() == [], (phone.aside(), laptop.aside())
            assert {id: v for id, v in versions.items() if v != 1}.keys() == {"shared"}, versions
            """, weir)
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }

    /// Devices edit at random while requests and answers are lost, and conflicts are resolved either way.
    @Test(arguments: TestLength.seeds(4, short: 2, long: 40)) func devicesConvergeWhileRequestsAndAnswersAreLost(
        seed: UInt64
    ) async throws {
        let weir = try await start()
        try await script(
            """
            chance = random.Random(int(sys.argv[3]))
            losses = True

            def lossy(*request):
                if losses and chance.random() < 0.15:
                    raise ConnectionResetError("the request is lost")
                answer = http_transport(*request)
                if losses and chance.random() < 0.15:
                    raise ConnectionResetError("the answer is lost")
                return answer

            names = "phone", "laptop", "tablet"
            devices = {name: device(name, lossy) for name in names}
            for step in range(300):
                name = chance.choice(names)
                d, table, id = devices[name], chance.choice(TABLES), f"r{chance.randrange(4)}"
                column = {"person": "email", "seat": "holder", "note": "text"}[table]
                action = chance.randrange(10)
                if action < 5:
                    d.put(table, id, {column: f"{name} {step}"} | ({"name": "N"} if table == "person" else {}))
                elif action < 6:
                    d.delete(table, id)
                elif action < 7:
                    for edit in d.aside():
                        chance.choice((d.resend, d.discard))(edit["number"])
                elif action < 8:
                    d.db.close()
                    devices[name] = device(name, lossy)
                else:
                    try:
                        d.sync()
                    except SyncError as error:
                        assert error.status is None, error
            losses = False
            expect_equal([*devices.values(), device("fresh")])
            """, weir, "\(seed)")
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }
}
