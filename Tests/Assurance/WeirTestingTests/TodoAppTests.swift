import Testing
import WeirClient
import WeirTesting

/// What the team of an app tests with the kit.
@Suite struct TodoAppTests {
    @Test func editsMadeOfflineReachTheOtherDevice() async throws {
        try await SyncKit.with(schema: TodoApp.schema, app: TodoApp.app) { kit in
            let phone = try await kit.device("phone")
            let tablet = try await kit.device("tablet")
            phone.network.goOffline()
            try await phone.write(
                """
                INSERT INTO list VALUES ('l1', 'Home');
                INSERT INTO todo (id, list, title, due) VALUES ('t1', 'l1', 'Buy milk', '2026-01-02 03:04:05')
                """)
            try await tablet.write("INSERT INTO list VALUES ('l2', 'Work')")
            await #expect(throws: SyncError.self) { try await phone.sync() }
            phone.network.goOnline()
            try await kit.converge()
            #expect(try await tablet.texts("SELECT title FROM todo") == ["Buy milk"])
            #expect(try await phone.texts("SELECT title FROM list ORDER BY id") == ["Home", "Work"])
        }
    }

    @Test func anEditReachesAnotherDeviceWhileBothAppsRun() async throws {
        try await SyncKit.with(schema: TodoApp.schema, app: TodoApp.app) { kit in
            let phone = try await kit.device("phone")
            let tablet = try await kit.device("tablet")
            for device in kit.devices { try await device.weir.start() }
            try await phone.write("INSERT INTO todo (id, title) VALUES ('t1', 'Buy milk')")
            let titles = await tablet.weir.observe("SELECT title FROM todo")
            for try await rows in titles where rows.first?["title"] == .text("Buy milk") { break }
            tablet.network.goOffline()
            try await phone.write("UPDATE todo SET title = 'Buy bread'")
            try await phone.sync()
            #expect(try await tablet.texts("SELECT title FROM todo") == ["Buy milk"])
            tablet.network.goOnline()
            await tablet.weir.nudge()
            for try await rows in titles where rows.first?["title"] == .text("Buy bread") { break }
        }
    }

    @Test func devicesConvergeOverAFaultyNetwork() async throws {
        var faults = 0
        try await Seeds.run(1...6) { seed in
            try await SyncKit.with(schema: TodoApp.schema, app: TodoApp.app, seed: seed) { kit in
                let devices = [
                    try await kit.device("phone"), try await kit.device("tablet"), try await kit.device("laptop"),
                ]
                kit.injectFaults(percent: 40)
                var random = TestRandom(seed: seed)
                for number in 0..<60 {
                    let device = devices[Int.random(in: 0..<devices.count, using: &random)]
                    switch Int.random(in: 0..<20, using: &random) {
                    case ..<12: try await device.write(TodoApp.edit(number, &random))
                    case 12: try await device.restart()
                    case 13: random.chance(50) ? device.network.goOffline() : device.network.goOnline()
                    default: do { try await device.sync() } catch is SyncError {}
                    }
                }
                for device in devices { device.network.goOnline() }
                try await kit.converge()
                faults += devices.flatMap(\.network.log).count { line in
                    NetworkFault.allCases.contains { line.hasSuffix(" \($0.rawValue)") }
                }
            }
        }
        // Otherwise it was no test of faults.
        #expect(faults > 30)
    }

    @Test func theServersTablesAreUsedWhereTheAppNamesNone() async throws {
        try await SyncKit.with(schema: TodoApp.schema) { kit in
            let phone = try await kit.device("phone")
            let tablet = try await kit.device("tablet")
            try await phone.write("INSERT INTO todo (id, title) VALUES (?1, ?2)", [.text("t1"), .text("Buy milk")])
            try await kit.converge()
            let rows = try await tablet.rows("SELECT title, done FROM todo")
            #expect(rows.map(\.values) == [[.text("Buy milk"), .integer(0)]])
        }
    }

    @Test func accountsAreApartAndALinkedOneIsSeen() async throws {
        try await SyncKit.with(schema: TodoApp.schema) { kit in
            let ada = try await kit.device("ada's phone", account: "ada")
            let eve = try await kit.device("eve's phone", account: "eve")
            let bob = try await kit.device("bob's phone", account: "bob", links: ["ada": .read])
            try await ada.write("INSERT INTO list VALUES ('l1', 'Home')")
            try await kit.converge()
            #expect(try await bob.texts("SELECT title FROM list") == ["Home"])
            #expect(try await eve.texts("SELECT title FROM list") == [])
        }
    }
}
