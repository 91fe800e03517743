import Foundation
import Testing
import WeirClient

/// The simulation of the netcoresync seed with real devices: their rows, their vectors, and the tombstones that they know.
@Suite(.timeLimit(.minutes(5))) struct NineActivitiesClientTests {
    private static let sql = "CREATE TABLE person (id TEXT PRIMARY KEY NOT NULL, name TEXT)"

    private func client(
        _ name: String, account: String = "abc", links: [String: Access] = [:], _ weir: WeirProcess,
        _ folder: TestFolder
    ) async throws -> ClientApp {
        let app = try await ClientApp(name, account: account, in: folder, Self.sql, tables: ["person"])
        try await app.attach(weir.port, links: links)
        return app
    }

    /// Expects a device's rows, its vector, and the rows that it knows to be deleted.
    private func expect(
        _ client: ClientApp, _ rows: [String], vector: [String], deleted: [String] = [], _ activity: Int
    ) throws {
        let comment = Comment("activity \(activity), \(client.name)")
        #expect(try client.rows("SELECT id || ' ' || name FROM person ORDER BY id") == rows, comment)
        let file = try ClientFile(path: client.path, tables: ["person"])
        let found = try file.knowledge().map { "\($0.syncID) \($0.knowledgeID) \($0.lastTimeStamp)" }
        file.database.close()
        #expect(found.sorted() == vector, comment)
        #expect(try client.rows("SELECT id FROM weir_row_1 WHERE deleted ORDER BY id") == deleted, comment)
    }

    /// The order within a batch is Weir's, so what the seed's clients send in an order is sent in two batches here.
    @Test func realDevicesHaveTheSeedsRowsAndVectors() async throws {
        let folder = try TestFolder()
        let activities = try NineActivities.standard()
        let weir = try await WeirProcess.start(
            schema: activities.schema, in: folder,
            settings: ["partitions": "\(activities.partitions)", "clock": activities.clock])
        let client1 = try await client("k1", weir, folder)
        try client1.run("INSERT INTO person VALUES ('guid1', 'A')")
        try await client1.weir.sync()
        try expect(client1, ["guid1 A"], vector: ["abc k1 100"], 1)
        try await client1.weir.sync()
        try expect(client1, ["guid1 A"], vector: ["abc k1 100"], 2)
        try client1.run("UPDATE person SET name = 'B'")
        try await client1.weir.sync()
        try expect(client1, ["guid1 B"], vector: ["abc k1 101"], 3)

        let client2 = try await client("k2", weir, folder)
        try client2.run("INSERT INTO person VALUES ('guid2', 'C')")
        for client in [client2, client1] {
            try await client.weir.sync()
            try expect(client, ["guid1 B", "guid2 C"], vector: ["abc k1 101", "abc k2 102"], 4)
        }

        try client1.run("INSERT INTO person VALUES ('guid3', 'E')")
        try await client1.weir.sync()
        try client1.run("UPDATE person SET name = 'F' WHERE id = 'guid2'")
        try await client1.weir.sync()
        try client2.run("INSERT INTO person VALUES ('guid4', 'G')")
        try await client2.weir.sync()
        try client2.run("UPDATE person SET name = 'H' WHERE id = 'guid1'")
        for client in [client2, client1] {
            try await client.weir.sync()
            try expect(
                client, ["guid1 H", "guid2 F", "guid3 E", "guid4 G"], vector: ["abc k1 106", "abc k2 105"], 5)
        }

        try client1.run("DELETE FROM person WHERE id = 'guid4'")
        try await client1.weir.sync()
        try client2.run("UPDATE person SET name = 'I' WHERE id = 'guid4'")
        for client in [client2, client1] {
            try await client.weir.sync()
            try expect(
                client, ["guid1 H", "guid2 F", "guid3 E"], vector: ["abc k1 106", "abc k2 108"], deleted: ["guid4"], 6)
        }

        let client3 = try await client("k3", account: "def", links: ["abc": .write], weir, folder)
        try await client3.weir.sync()
        try expect(
            client3, ["guid1 H", "guid2 F", "guid3 E"], vector: ["abc k1 106", "abc k2 108"], deleted: ["guid4"], 7)

        try client3.run("INSERT INTO person VALUES ('guid5', 'J')")
        try await client3.weir.sync()
        try client3.run("INSERT INTO person VALUES ('guid6', 'K')")
        #expect(try await client3.weir.setOwner("abc", of: "person", .text("guid6")))
        try await client3.weir.sync()
        try client3.run("UPDATE person SET name = 'L' WHERE id = 'guid1'")
        try await client3.weir.sync()
        try expect(
            client3, ["guid1 L", "guid2 F", "guid3 E", "guid5 J", "guid6 K"],
            vector: ["abc k1 111", "abc k2 108", "abc k3 110", "def k3 109"], deleted: ["guid4"], 8)

        for client in [client1, client2] {
            try await client.weir.sync()
            try expect(
                client, ["guid1 L", "guid2 F", "guid3 E", "guid6 K"],
                vector: ["abc k1 111", "abc k2 108", "abc k3 110"], deleted: ["guid4"], 9)
            #expect(
                try client.states() == ["guid1 111 0", "guid2 104 0", "guid3 103 0", "guid4 108 1", "guid6 110 0"])
        }
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }
}
