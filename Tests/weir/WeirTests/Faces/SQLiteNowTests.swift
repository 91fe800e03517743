import Foundation
import Seeded
import Testing

/// Clients of the SQLiteNow protocol against the running server, and the face's own answers.
@Suite(.timeLimit(.minutes(5))) struct SQLiteNowTests {
    static let schema = """
        tables:
          users:
            columns:
              name: { type: text, nullable: false }
              email: text
          tasks:
            columns:
              user: { type: text, references: users }
              title: { type: text, nullable: false, default: untitled }
              done: { type: boolean, nullable: false, default: false }
              rank: { type: integer, nullable: false, default: 0 }

        """

    static let tables = [
        SQLiteNowClient.Table(name: "users", columns: ["name", "email"]),
        SQLiteNowClient.Table(name: "tasks", columns: ["user", "title", "done", "rank"]),
    ]

    /// A server with the face, embedded.
    static func withServer(
        _ settings: [String: String] = [:], _ body: (_ port: UInt16, TestFolder) async throws -> Void
    ) async throws {
        let folder = try TestFolder()
        try folder.write(schema, to: "schema.yaml")
        let weir = try await WeirProcess.start(
            schema: folder.path + "/schema.yaml", in: folder,
            settings: ["faces": "sqlitenow"].merging(settings) { $1 })
        try await body(weir.port, folder)
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }

    /// An app's file with its tables.
    static func client(
        _ source: String, _ port: UInt16, _ folder: TestFolder, uploadLimit: Int = 100, limit: Int = 1000
    ) throws -> SQLiteNowClient {
        let path = folder.path + "/\(source).db"
        try AppDatabase(path: path).write { db in
            for table in tables {
                let columns = table.columns.map { ", \($0)" }.joined()
                try db.run("CREATE TABLE IF NOT EXISTS \(table.name)(id TEXT PRIMARY KEY\(columns))")
            }
        }
        return try SQLiteNowClient(
            path, port: port, syncID: "anna", source: source, tables: tables, limit: limit, uploadLimit: uploadLimit)
    }

    // MARK: The document's essential scenarios

    /// The most critical one: a delete wins against an update that it had not seen.
    static func playDeleteAgainstUpdate(_ port: UInt16, _ folder: TestFolder) async throws {
        let (a, b) = (try client("a", port, folder), try client("b", port, folder))
        try a.database.run("INSERT INTO users VALUES ('u1', 'Alice', 'alice@example.com'), ('u2', 'Bob', NULL)")
        try await a.sync()
        try await b.sync()
        #expect(try b.rows(of: "users") == a.rows(of: "users"))
        try b.database.run("UPDATE users SET name = 'Alice Smith' WHERE id = 'u1'")
        try await b.sync()
        try a.database.run("DELETE FROM users WHERE id = 'u1'")
        try await a.sync()
        try await b.sync()
        for device in [a, b] {
            #expect(try device.rows(of: "users").map { $0["id"] } == ["u2"])
            #expect(try device.hasPending == false)
            #expect(device.errors.isEmpty)
        }
        #expect(try a.meta == b.meta)
        #expect(try a.meta.map { $0["deleted"] } == [1, 0])
    }

    @Test func aDeleteWinsAgainstAnUpdate() async throws {
        try await Self.withServer { try await Self.playDeleteAgainstUpdate($0, $1) }
    }

    /// Devices that write at random while requests and answers are lost; in the end all have the same.
    static func playAtRandom(_ port: UInt16, _ folder: TestFolder, seed: UInt64, rounds: Int) async throws {
        var random = SeededRandom(seed: seed)
        let devices = try (1...3).map { try client("d\($0)", port, folder, uploadLimit: 7, limit: 5) }
        let generator = Generator(SeededRandom(seed: seed &+ 1000))
        for device in devices {
            device.network = {
                switch Int.random(in: 0..<8, using: &generator.random) {
                case 0: .losesRequest
                case 1: .losesAnswer
                default: .works
                }
            }
            // Both edits count: the app merges by column.
            device.resolve = { server, payload in
                guard let other = server["rank"].int, let own = payload["rank"].int else { return payload }
                return payload.with("rank", JSON(max(other, own)))
            }
        }
        for round in 0..<rounds {
            let device = devices[Int.random(in: 0..<devices.count, using: &random)]
            for _ in 0..<Int.random(in: 1...4, using: &random) { try edit(device, round, &random) }
            if Bool.random(using: &random) { try await untilOffline(device) }
        }
        for device in devices { device.network = { .works } }
        // A conflict's winner is new to those that have drained before.
        for _ in 0..<4 {
            for device in devices { try await device.sync() }
        }
        for device in devices {
            #expect(try device.hasPending == false)
            #expect(device.errors.isEmpty, "\(device.errors)")
            for table in ["users", "tasks"] {
                let (rows, first) = (try device.rows(of: table), try devices[0].rows(of: table))
                #expect(rows == first, "seed \(seed): \(table) of \(device.source)")
            }
            // Of the deleted rows, too, each at the same version.
            #expect(try device.meta == devices[0].meta, "seed \(seed): \(device.source)")
        }
        // A new file, which starts from nothing.
        let fresh = try client("fresh", port, folder)
        try await fresh.download(includeSelf: true)
        #expect(try fresh.meta == devices[0].meta, "seed \(seed): a new file")
        for table in ["users", "tasks"] { #expect(try fresh.rows(of: table) == devices[0].rows(of: table)) }
    }

    /// A generator that closures share.
    private final class Generator {
        var random: SeededRandom

        init(_ random: SeededRandom) { self.random = random }
    }

    private static func untilOffline(_ device: SQLiteNowClient) async throws {
        do { try await device.sync() } catch is SQLiteNowClient.Offline {}
    }

    private static func edit(_ device: SQLiteNowClient, _ round: Int, _ random: inout SeededRandom) throws {
        let id = "r\(Int.random(in: 0..<6, using: &random))"
        switch Int.random(in: 0..<7, using: &random) {
        case 0: try device.database.run("DELETE FROM tasks WHERE id = ?1", [JSON(id)])
        case 1: try device.database.run("INSERT OR IGNORE INTO users VALUES (?1, 'n', NULL)", [JSON(id)])
        case 2:
            try device.database.run("UPDATE users SET name = ?2 WHERE id = ?1", [JSON(id), JSON("n\(round)")])
        case 3:
            try device.database.run(
                "UPDATE tasks SET done = NOT done, rank = ?2 WHERE id = ?1", [JSON(id), JSON(round)])
        default:
            try device.database.run(
                """
                INSERT INTO tasks VALUES (?1, NULL, ?2, 0, ?3) \
                ON CONFLICT(id) DO UPDATE SET title = excluded.title, rank = excluded.rank
                """, [JSON(id), JSON("t\(round)"), JSON(round)])
        }
    }

    @Test func theRequestsOfTheDocumentAreAnsweredAsItShows() async throws {
        let document = try WalkThrough("sqlitenow")
        let folder = try TestFolder()
        try folder.write(document.schema, to: "schema.yaml")
        let weir = try await WeirProcess.start(
            schema: folder.path + "/schema.yaml", in: folder,
            settings: ["faces": "sqlitenow", "clock": "sequence(100)"])
        try await document.play(port: weir.port, in: folder)
        #expect(await weir.stop() == 0)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func devicesThatLoseRequestsAndAnswersConverge(seed: UInt64) async throws {
        try await Self.withServer { try await Self.playAtRandom($0, $1, seed: seed, rounds: 60) }
    }

    @Test func anUploadThatWasNotAnsweredIsAppliedOnce() async throws {
        try await Self.withServer { port, folder in
            let (a, b) = (try Self.client("a", port, folder), try Self.client("b", port, folder))
            try a.database.run("INSERT INTO users VALUES ('u1', 'Alice', NULL)")
            try a.database.run("UPDATE users SET name = 'Alice Smith'")
            a.network = { .losesAnswer }
            await #expect(throws: SQLiteNowClient.Offline.self) { try await a.sync() }
            #expect(try a.hasPending)
            try await b.sync()
            try b.database.run("UPDATE users SET email = 'a@example.com'")
            try await b.sync()
            a.network = { .works }
            try await a.sync()
            #expect(try a.hasPending == false && a.errors.isEmpty)
            #expect(try a.rows(of: "users") == [["id": "u1", "name": "Alice Smith", "email": "a@example.com"]])
            #expect(try a.meta == b.meta)
        }
    }

    // MARK: Deleted rows

    @Test func anEditOfARowThatAnotherDeletedIsAppliedAndTheRowGoes() async throws {
        try await Self.withServer { port, folder in
            let (a, b) = (try Self.client("a", port, folder), try Self.client("b", port, folder))
            try a.database.run("INSERT INTO users VALUES ('u1', 'Alice', NULL)")
            try await a.sync()
            try await b.sync()
            try b.database.run("DELETE FROM users")
            try await b.sync()
            try a.database.run("UPDATE users SET name = 'Eve'")
            try await a.sync()
            #expect(try a.rows(of: "users").isEmpty)
            #expect(try a.hasPending == false)
            // It is no version that the next edit could have seen.
            #expect(try a.meta.map { $0["deleted"] } == [1])
            try await b.sync()
            #expect(try b.meta == a.meta)
        }
    }

    @Test func aRowThatTheDeviceDeletedAndInsertsAgainLives() async throws {
        try await Self.withServer { port, folder in
            let (a, b) = (try Self.client("a", port, folder), try Self.client("b", port, folder))
            try a.database.run("INSERT INTO users VALUES ('u1', 'Alice', NULL)")
            try await a.sync()
            // In one batch, and in two.
            for (index, isSynced) in [false, true].enumerated() {
                try a.database.run("DELETE FROM users")
                if isSynced { try await a.sync() }
                try a.database.run("INSERT INTO users VALUES ('u1', ?1, 'x')", [JSON("Again \(index)")])
                try a.database.run("UPDATE users SET email = NULL")
                try await a.sync()
                try await b.sync()
                for device in [a, b] {
                    #expect(
                        try device.rows(of: "users") == [["id": "u1", "name": JSON("Again \(index)"), "email": nil]])
                }
            }
        }
    }

    // MARK: Answers

    private struct Raw {
        let client: DeviceClient

        init(_ port: UInt16, _ source: String, owner: String = "anna") {
            client = DeviceClient(port: port, headers: ["X-Sync-Id": owner, "X-Device-Id": source])
        }

        func upload(_ changes: [JSON], seen: Int? = nil) async throws -> JSON {
            var body: JSON = ["changes": JSON(changes.map(\.value))]
            if let seen { body = body.with("lastServerSeqSeen", JSON(seen)) }
            let answer = try await client.post("/sync/upload", body)
            try #require(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
            return try answer.json()
        }

        func download(_ query: String) async throws -> JSON {
            let answer = try await client.get("/sync/download?\(query)")
            try #require(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
            return try answer.json()
        }
    }

    private static func change(
        _ number: Int, _ op: String, _ key: String, base: Int = 0, _ payload: JSON = nil, table: String = "users"
    ) -> JSON {
        [
            "sourceChangeId": JSON(number), "schema": "business", "table": JSON(table), "op": JSON(op), "pk": JSON(key),
            "serverVersion": JSON(base), "payload": payload,
        ]
    }

    @Test func everyChangeGetsItsStatusInTheOrderOfTheRequest() async throws {
        try await Self.withServer(["clock": "sequence(100)"]) { port, _ in
            let (a, b) = (Raw(port, "a"), Raw(port, "b"))
            let first = try await a.upload([
                Self.change(1, "INSERT", "u1", ["id": "u1", "name": "Alice", "email": nil]),
                Self.change(2, "INSERT", "u2", ["id": "u3", "name": "Bob"]),
                Self.change(3, "UPDATE", "u3", base: 50, ["name": "Carl"]),
                Self.change(4, "UPDATE", "u4", ["name": "Dora"]),
                Self.change(5, "DELETE", "u5", base: 7),
                Self.change(6, "INSERT", "u6", ["email": "x"]),
                Self.change(7, "INSERT", "u7", ["name": "E", "age": 5]),
                Self.change(8, "MERGE", "u8", ["name": "F"]),
                Self.change(9, "INSERT", "u9", ["name": "G"], table: "cars"),
                Self.change(10, "INSERT", "", ["name": "H"]), Self.change(11, "INSERT", "u11"),
                Self.change(12, "UPDATE", "u1", ["name": "Alice 2"]),
                Self.change(13, "INSERT", "t1", ["title": "T", "done": 1], table: "TASKS"),
            ])
            let statuses = first["statuses"].array
            #expect(statuses.map { $0["sourceChangeId"].int } == Array(1...13))
            #expect(
                statuses.map { $0["status"].string } == [
                    "applied", "invalid", "invalid", "applied", "applied", "invalid", "invalid", "invalid", "invalid",
                    "invalid", "invalid", "applied", "applied",
                ])
            #expect(statuses.map { $0["newServerVersion"].int }.compactMap(\.self) == [100, 101, 7, 102, 103])
            #expect(statuses.allSatisfy { ($0["status"] == "invalid") == ($0["message"].string != nil) })
            let second = try await b.upload([
                Self.change(1, "UPDATE", "u1", base: 100, ["name": "B"]), Self.change(2, "DELETE", "u1", base: 100),
                Self.change(3, "INSERT", "u1", ["name": "B"]), Self.change(4, "UPDATE", "u1", base: 500, ["name": "B"]),
                Self.change(5, "UPDATE", "u1", base: 102, ["name": "B", "email": nil]),
            ])["statuses"].array
            #expect(second.map { $0["status"].string } == ["conflict", "conflict", "conflict", "conflict", "applied"])
            for conflict in second.prefix(4) {
                #expect(conflict["newServerVersion"] == 104 || conflict["newServerVersion"] == 102)
                #expect(conflict["serverRow"]["id"] == "u1")
            }
            let rows = try await b.download("after=102&limit=10&includeSelf=true")["changes"].array
            #expect(rows.map { $0["tableName"] } == ["tasks", "users"])
            #expect(rows[0]["payload"]["done"] == true && rows[0]["payload"]["title"] == "T")
            #expect(rows[1]["payload"]["name"] == "B" && rows[1]["sourceId"] == "b")
        }
    }

    /// As the table of docs/faces/sqlitenow.md has it, for rows that another device wrote or deleted.
    @Test func theBaseDecidesOverRowsOfAnotherDevice() async throws {
        try await Self.withServer(["clock": "sequence(100)"]) { port, _ in
            let (a, b) = (Raw(port, "a"), Raw(port, "b"))
            _ = try await a.upload((1...4).map { Self.change($0, "INSERT", "u\($0)", ["name": "Alice"]) })
            let blind = try await b.upload([Self.change(1, "UPDATE", "u1", ["name": "B"])])["statuses"][0]
            #expect(blind["status"] == "conflict" && blind["newServerVersion"] == 100)
            #expect(blind["serverRow"]["name"] == "Alice")
            let deleted = try await b.upload((2...4).map { Self.change($0, "DELETE", "u\($0)", base: 99 + $0) })
            let tombstone = try #require(deleted["statuses"][2]["newServerVersion"].int)
            // A tombstone that the device has not seen: the row stays deleted.
            let unseen = try await a.upload([
                Self.change(5, "UPDATE", "u2", base: 101, ["name": "C"]), Self.change(6, "INSERT", "u3", ["name": "C"]),
            ])["statuses"].array
            #expect(unseen.map { $0["status"] } == ["applied", "applied"])
            #expect(unseen.map { $0["newServerVersion"] } == [101, 0])
            // One that it has seen: the row lives again.
            let seen = try await a.upload([Self.change(7, "UPDATE", "u4", base: tombstone, ["name": "C"])])
            let version = try #require(seen["statuses"][0]["newServerVersion"].int)
            #expect(seen["statuses"][0]["status"] == "applied" && version > tombstone)
            let rows = try await a.download("after=103&limit=10&includeSelf=true")["changes"].array
            let shown = Dictionary(uniqueKeysWithValues: rows.map { ($0["pk"].string ?? "", $0["op"].string ?? "") })
            #expect(shown["u2"] == "DELETE" && shown["u3"] == "DELETE" && shown["u4"] != "DELETE")
            #expect(rows.last?["pk"] == "u4" && rows.last?["serverVersion"].int == version)
        }
    }

    /// A status of its own, so that the client keeps the change and sends it again.
    @Test func aChangeThatMayPassLaterIsNotInvalid() async throws {
        try await Self.withServer(["limits.max-owner-rows": "1"]) { port, _ in
            let a = Raw(port, "a")
            let (first, second) = (
                Self.change(1, "INSERT", "u1", ["name": "A"]), Self.change(2, "INSERT", "u2", ["name": "B"])
            )
            let statuses = try await a.upload([first, second])["statuses"].array
            #expect(statuses.map { $0["status"] } == ["applied", "materialize_error"])
            #expect(statuses[1]["message"].string?.isEmpty == false && statuses[1]["newServerVersion"].int == nil)
            let version = try #require(statuses[0]["newServerVersion"].int)
            _ = try await a.upload([Self.change(3, "DELETE", "u1", base: version)])
            #expect(try await a.upload([second])["statuses"][0]["status"] == "applied")
        }
    }

    @Test func aRepeatedChangeIsAppliedOnceAndOtherContentIsInvalid() async throws {
        try await Self.withServer(["clock": "sequence(100)"]) { port, _ in
            let a = Raw(port, "a")
            let change = Self.change(1, "INSERT", "u1", ["name": "Alice"])
            for _ in 1...3 {
                let status = try await a.upload([change])["statuses"][0]
                #expect(status["status"] == "applied" && status["newServerVersion"] == 100)
            }
            let other = try await a.upload([Self.change(1, "INSERT", "u1", ["name": "Bob"])])["statuses"][0]
            #expect(other["status"] == "invalid")
            // Of another source.
            let foreign = try await Raw(port, "b").upload([change])["statuses"][0]
            #expect(foreign["status"] == "conflict" && foreign["newServerVersion"] == 100)
        }
    }

    @Test func aDownloadHasThePagesOfAWindow() async throws {
        try await Self.withServer(["clock": "sequence(100)"]) { port, _ in
            let (a, b) = (Raw(port, "a"), Raw(port, "b"))
            _ = try await a.upload((1...5).map { Self.change($0, "INSERT", "u\($0)", ["name": "N", "email": nil]) })
            let first = try await b.download("after=0&limit=2")
            #expect(first["changes"].array.map { $0["serverVersion"].int } == [100, 101])
            #expect(first["hasMore"] == true && first["nextAfter"] == 101 && first["windowUntil"] == 104)
            _ = try await a.upload([Self.change(6, "INSERT", "u6", ["name": "N", "email": nil])])
            let second = try await b.download("after=101&limit=100000&until=104")
            #expect(second["changes"].array.map { $0["serverVersion"].int } == [102, 103, 104])
            #expect(second["hasMore"] == false && second["nextAfter"] == 104 && second["windowUntil"] == 104)
            let third = try await b.download("after=104&limit=10")
            #expect(third["changes"].array.map { $0["op"].string } == ["INSERT"])
            // Its own are left out, and the position moves over them.
            let own = try await a.download("after=0&limit=3")
            #expect(own["changes"].array.isEmpty && own["nextAfter"] == 105 && own["hasMore"] == false)
            let all = try await a.download("after=0&limit=10&includeSelf=true")
            #expect(all["changes"].array.count == 6)
            let snake = try await a.download("after=0&limit=1&include_self=true")
            #expect(
                snake["changes"][0]["server_version"] == 100 && snake["next_after"] == 100 && snake["has_more"] == true)
        }
    }

    @Test func anOwnRowThatIsNotAsItWasSentComesBackWithoutASource() async throws {
        try await Self.withServer(["clock": "sequence(100)"]) { port, _ in
            let a = Raw(port, "a")
            // Without email, which the server fills in.
            _ = try await a.upload([
                Self.change(1, "INSERT", "u1", ["name": "Alice"]),
                Self.change(2, "INSERT", "u2", ["name": "Bob", "email": "b"]),
            ])
            let rows = try await a.download("after=0&limit=10")["changes"].array
            #expect(rows.map { $0["pk"] } == ["u1"])
            #expect(rows.map { $0["sourceId"] } == [""])
        }
    }

    @Test func theHighestVersionIsNamedWhereNothingWaitsToBeDownloaded() async throws {
        try await Self.withServer(["clock": "sequence(100)"]) { port, _ in
            let (a, b) = (Raw(port, "a"), Raw(port, "b"))
            func change(_ number: Int) -> JSON {
                Self.change(number, "INSERT", "u\(number)", ["name": "N", "email": nil])
            }
            let answer1 = try await a.upload([change(1)])
            #expect(answer1["highestServerSeq"].isNull)
            let answer2 = try await a.upload([change(2)], seen: 0)
            #expect(answer2["highestServerSeq"] == 101)
            let answer3 = try await b.upload([change(3)], seen: 0)
            #expect(answer3["highestServerSeq"].isNull)
            let answer4 = try await b.upload([change(4)], seen: 101)
            #expect(answer4["highestServerSeq"] == 103)
        }
    }

    @Test func snakeCaseIsAnsweredInSnakeCase() async throws {
        try await Self.withServer(["clock": "sequence(100)"]) { port, _ in
            let client = Raw(port, "a").client
            let answer = try await client.post(
                "/sync/upload",
                [
                    "last_server_seq_seen": 0,
                    "changes": [
                        [
                            "source_change_id": 1, "table": "users", "op": "INSERT", "pk": "u1", "server_version": 0,
                            "payload": ["name": "A", "email": nil],
                        ],
                        ["source_change_id": 2, "table": "x", "op": "INSERT", "pk": "u1", "payload": [:]],
                    ],
                ]
            ).json()
            #expect(
                answer["statuses"][0]["source_change_id"] == 1 && answer["statuses"][0]["new_server_version"] == 100)
            #expect(answer["statuses"][1]["source_change_id"] == 2)
            #expect(answer["highest_server_seq"] == 100)
        }
    }

    @Test(
        arguments: [
            ("GET", "/sync/download?limit=10", nil, 422, "invalid_request"),
            ("GET", "/sync/download?after=0", nil, 422, "invalid_request"),
            ("GET", "/sync/download?after=0&limit=0", nil, 422, "invalid_request"),
            ("GET", "/sync/download?after=x&limit=10", nil, 422, "invalid_request"),
            ("GET", "/sync/download?after=0&limit=10&includeSelf=perhaps", nil, 422, "invalid_request"),
            ("GET", "/sync/download?after=900&limit=10", nil, 410, "position_ahead"),
            ("GET", "/sync/download?after=0&limit=10&schema=private", nil, 422, "invalid_request"),
            ("POST", "/sync/upload", "[]", 422, "invalid_request"),
            ("POST", "/sync/upload", "{", 400, "malformed_json"),
            ("POST", "/sync/upload", #"{"changes":{}}"#, 422, "invalid_request"),
            ("POST", "/sync/upload", #"{"changes":[{}]}"#, 422, "invalid_request"),
            ("POST", "/sync/upload", #"{"changes":[],"lastServerSeqSeen":-1}"#, 422, "invalid_request"),
        ] as [(String, String, String?, Int, String)])
    func requestsThatCannotBeReadAreProblems(
        method: String, path: String, body: String?, status: Int, code: String
    ) async throws {
        try await Self.withServer(["sqlitenow.schema": "business"]) { port, _ in
            let client = Raw(port, "a").client
            let answer =
                method == "GET"
                ? try await client.get(path + (path.contains("schema=") ? "" : "&schema=business"))
                : try await client.post(path, bytes: Data((body ?? "").utf8))
            #expect(answer.status == status)
            #expect(try answer.json()["code"].string == code)
        }
    }

    @Test func theSchemasNameIsComparedWhereOneIsConfigured() async throws {
        try await Self.withServer(["sqlitenow.schema": "business", "clock": "sequence(100)"]) { port, _ in
            let a = Raw(port, "a")
            let change = Self.change(1, "INSERT", "u1", ["name": "A"])
            let statuses = try await a.upload([change, change.with("sourceChangeId", 2).with("schema", "x")])[
                "statuses"]
            #expect(statuses[0]["status"] == "applied" && statuses[1]["status"] == "invalid")
        }
    }

    @Test func anotherOwnersRowsAreNeitherSentNorTouched() async throws {
        try await Self.withServer { port, _ in
            _ = try await Raw(port, "a").upload([Self.change(1, "INSERT", "u1", ["name": "A", "email": nil])])
            let stranger = Raw(port, "a", owner: "berta")
            let nothing = try await stranger.download("after=0&limit=10")["changes"].array
            #expect(nothing.isEmpty)
            let status = try await stranger.upload([Self.change(1, "DELETE", "u1", base: 0)])["statuses"][0]
            #expect(status["status"] == "applied" && status["newServerVersion"] == 0)
            let rows = try await Raw(port, "b").download("after=0&limit=10")["changes"].array
            #expect(rows.count == 1)
        }
    }
}

/// The same through separate processes on Kafka and Postgres.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct ClusterSQLiteNowTests {
    @Test func clientsConvergeThroughSeparateProcesses() async throws {
        let cluster = try await WeirCluster.make(
            .init(partitions: 4, clock: "log-time", schema: SQLiteNowTests.schema, settings: ["faces": "[sqlitenow]"]))
        let members = try await cluster.startOneOfEach()
        let folder = try TestFolder()
        try await SQLiteNowTests.playDeleteAgainstUpdate(members[0].port, folder)
        let second = try TestFolder()
        try await SQLiteNowTests.playAtRandom(members[0].port, second, seed: 4, rounds: 30)
        for member in members.reversed() { await member.stop() }
    }
}
