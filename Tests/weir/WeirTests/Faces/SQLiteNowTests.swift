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
    ///
    /// - Parameter sync: how the device syncs that deletes the row.
    static func playDeleteAgainstUpdate(
        _ port: UInt16, _ folder: TestFolder, sync: (SQLiteNowClient) async throws -> Void = { try await $0.sync() }
    ) async throws {
        let (a, b) = (try client("a", port, folder), try client("b", port, folder))
        try a.database.run("INSERT INTO users VALUES ('u1', 'Alice', 'alice@example.com'), ('u2', 'Bob', NULL)")
        try await a.sync()
        try await b.sync()
        #expect(try b.rows(of: "users") == a.rows(of: "users"))
        try b.database.run("UPDATE users SET name = 'Alice Smith' WHERE id = 'u1'")
        try await b.sync()
        try a.database.run("DELETE FROM users WHERE id = 'u1'")
        try await sync(a)
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

    /// One upload in each cycle: the download after it brings the row back, in the version that the delete was in conflict with.
    @Test func aDeleteWinsThatIsSentAgainInTheNextCycle() async throws {
        try await Self.withServer { port, folder in
            try await Self.playDeleteAgainstUpdate(port, folder) { device in
                for cycle in 1...2 {
                    try await device.upload()
                    try await device.download()
                    #expect(try device.hasPending == (cycle == 1))
                    #expect(try device.rows(of: "users").count == (cycle == 1 ? 2 : 1))
                }
            }
        }
    }

    /// Nothing of the rest comes to the device that wrote it.
    @Test func aRowThatTheDeviceDeletedIsDownloadedOnce() async throws {
        try await Self.withServer { port, folder in
            let a = try Self.client("a", port, folder)
            try a.database.run("INSERT INTO users VALUES ('u1', 'Alice', NULL), ('u2', 'Bob', NULL)")
            try await a.sync()
            try a.database.run("DELETE FROM users WHERE id = 'u1'")
            try await a.upload()
            for expected in [["DELETE u1 "], []] {
                let answer = try await a.client.get("/sync/download?after=\(a.watermark)&limit=10&schema=business")
                    .json()
                #expect(
                    answer["changes"].array.map {
                        "\($0["op"].string ?? "") \($0["pk"].string ?? "") \($0["sourceId"].string ?? "-")"
                    } == expected)
                try await a.download()
            }
            #expect(try a.rows(of: "users").map { $0["id"] } == ["u2"])
        }
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

    /// A download brings the row back, whose delete is still to be uploaded.
    @Test func aQueuedDeleteWinsAgainstAnEditThatIsDownloadedBeforeIt() async throws {
        try await Self.withServer { port, folder in
            let (a, b) = (try Self.client("a", port, folder), try Self.client("b", port, folder))
            try a.database.run("INSERT INTO users VALUES ('u1', 'Alice', NULL)")
            try await a.sync()
            try await b.sync()
            try b.database.run("UPDATE users SET name = 'Eve'")
            try await b.sync()
            try a.database.run("DELETE FROM users")
            try await a.download()
            try await a.sync()
            try await b.sync()
            for device in [a, b] { #expect(try device.rows(of: "users").isEmpty, "\(device.source)") }
            #expect(try a.meta == b.meta && a.meta.map { $0["deleted"] } == [1])
        }
    }

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
