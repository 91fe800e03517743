import Testing
import WeirClient
import WeirTesting

@Suite struct TodoSyncTests {
    /// What the server's schema file declares.
    static let schema = """
        tables:
          todo:
            columns:
              title: { type: text, nullable: false }
              done: { type: boolean, nullable: false, default: false }
        """

    /// What the app's first migration creates.
    static let app = SyncKit.App(
        createTables: "CREATE TABLE todo (id TEXT PRIMARY KEY NOT NULL, title TEXT NOT NULL, done INTEGER NOT NULL)",
        tables: ["todo"])

    @Test func editsOfTwoDevicesOfflineAreBothKept() async throws {
        try await SyncKit.with(schema: Self.schema, app: Self.app) { kit in
            let phone = try await kit.device("phone")
            let tablet = try await kit.device("tablet")
            try await phone.write("INSERT INTO todo VALUES ('t1', 'Buy milk', 0)")
            try await kit.converge()

            phone.network.goOffline()
            try await phone.write("UPDATE todo SET title = 'Buy oat milk' WHERE id = 't1'")
            try await tablet.write("UPDATE todo SET done = 1 WHERE id = 't1'")
            phone.network.goOnline()
            try await kit.converge()
            #expect(try await tablet.texts("SELECT title || ' ' || done FROM todo") == ["Buy oat milk 1"])
        }
    }

    @Test func nothingIsLostOverAFaultyNetwork() async throws {
        try await Seeds.run(1...5) { seed in
            try await SyncKit.with(schema: Self.schema, app: Self.app, seed: seed) { kit in
                let devices = [try await kit.device("phone"), try await kit.device("tablet")]
                kit.injectFaults(percent: 30)
                var random = TestRandom(seed: seed)
                for number in 0..<20 {
                    let device = devices[Int.random(in: 0...1, using: &random)]
                    try await device.write("INSERT INTO todo VALUES ('t\(number)', 'Item \(number)', 0)")
                    // What a fault has prevented is tried again with the next call.
                    do { try await device.sync() } catch is SyncError {}
                }
                try await kit.converge()
                #expect(try await devices[1].texts("SELECT count(*) FROM todo") == ["20"])
            }
        }
    }
}
