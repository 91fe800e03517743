import Testing
import WeirClient
import WeirTesting

@testable import contacts

@Suite struct ContactsTests {
    /// What the server's schema file declares.
    static let schema = """
        tables:
          person:
            columns:
              name: { type: text, nullable: false }
              email: text
              birthday: date
        """

    /// What the app's first migration creates.
    static let app = SyncKit.App(createTables: AppDatabase.tables, tables: ["person"])

    @Test func editsOfTwoDevicesOfflineAreBothKept() async throws {
        try await SyncKit.with(schema: Self.schema, app: Self.app) { kit in
            let phone = try await kit.device("phone")
            let laptop = try await kit.device("laptop")
            try await phone.write("INSERT INTO person (id, name) VALUES ('p1', 'Grace')")
            try await kit.converge()

            phone.network.goOffline()
            try await phone.write("UPDATE person SET name = 'Grace Hopper' WHERE id = 'p1'")
            try await laptop.write("UPDATE person SET email = 'grace@example.com' WHERE id = 'p1'")
            phone.network.goOnline()
            try await kit.converge()
            #expect(
                try await laptop.texts("SELECT name || ' ' || email FROM person") == ["Grace Hopper grace@example.com"])
        }
    }

    @Test func aContactWhoseAnswerWasLostIsAddedOnce() async throws {
        try await SyncKit.with(schema: Self.schema, app: Self.app) { kit in
            let phone = try await kit.device("phone")
            let laptop = try await kit.device("laptop")
            try await phone.write("INSERT INTO person (id, name) VALUES ('p1', 'Grace')")
            phone.network.failNext(.lostAnswer)
            await #expect(throws: SyncError.self) { try await phone.sync() }
            try await kit.converge()
            #expect(try await laptop.texts("SELECT name FROM person") == ["Grace"])
        }
    }

    @Test func nothingIsLostOverAFaultyNetwork() async throws {
        try await Seeds.run(1...5) { seed in
            try await SyncKit.with(schema: Self.schema, app: Self.app, seed: seed) { kit in
                let devices = [try await kit.device("phone"), try await kit.device("laptop")]
                kit.injectFaults(percent: 30)
                var random = TestRandom(seed: seed)
                for number in 0..<20 {
                    let device = devices[Int.random(in: 0...1, using: &random)]
                    try await device.write("INSERT INTO person (id, name) VALUES ('p\(number)', 'Name \(number)')")
                    // What a fault has prevented is tried again with the next call.
                    do { try await device.sync() } catch is SyncError {}
                }
                try await kit.converge()
                try #require(try await devices[1].texts("SELECT count(*) FROM person") == ["20"])
            }
        }
    }
}
