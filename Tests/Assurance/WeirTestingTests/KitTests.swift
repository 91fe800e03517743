import Foundation
import TestResources
import Testing
import WeirClient
import WeirTesting

/// What the kit itself promises.
@Suite struct KitTests {
    /// A kit with a phone and a tablet.
    private func withTwo(
        schema: String = TodoApp.schema, app: SyncKit.App = TodoApp.app,
        _ body: (SyncKit, TestDevice, TestDevice) async throws -> Void
    ) async throws {
        try await SyncKit.with(schema: schema, app: app) { kit in
            try await body(kit, kit.device("phone"), kit.device("tablet"))
        }
    }

    /// An app that has a column before the server's schema has it.
    private enum Colors {
        static let app = SyncKit.App(
            createTables: "CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, title TEXT, color TEXT)", tables: ["list"])
        static let before = "tables: { list: { columns: { title: text } } }"
        static let withDefault =
            #"tables: { list: { columns: { title: text, color: { type: text, default: "gray" } } } }"#
    }

    // MARK: Converging

    @Test func aRefusedRowIsADifferenceWithItsReason() async throws {
        try await withTwo { kit, phone, _ in
            try await phone.write("INSERT INTO list VALUES ('l1', 'A title that is longer than twenty')")
            let failure = await #expect(throws: ConvergenceFailure.self) { try await kit.converge() }
            let text = failure?.description ?? ""
            #expect(text.contains("list l1: phone has it, the server lacks it"), "\(text)")
            #expect(text.contains("phone list l1 was not stored: invalid_value"), "\(text)")
            #expect(text.contains("seed 1"), "\(text)")
        }
    }

    @Test func aValueThatIsWrittenBehindWeirsBackIsADifferenceOfItsColumn() async throws {
        try await withTwo { kit, phone, tablet in
            try await phone.write("INSERT INTO list VALUES ('l1', 'Home')")
            try await kit.converge()
            // As a bug of the app would: no trigger sees it.
            let triggers = try await tablet.texts("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
            for trigger in triggers { try await tablet.write("DROP TRIGGER \(trigger)") }
            try await tablet.write("UPDATE list SET title = 'House'")
            let failure = await #expect(throws: ConvergenceFailure.self) { try await kit.converge() }
            #expect(failure?.findings == [#"list l1, title: tablet has "House", the server has "Home""#])
        }
    }

    @Test func whatASlowResolverDecidesIsSentBeforeDevicesAreCompared() async throws {
        let app = SyncKit.App(
            createTables: "CREATE TABLE note (id TEXT PRIMARY KEY NOT NULL, title TEXT)", tables: ["note"])
        let schema = "tables: { note: { policy: checkBase, columns: { title: text } } }"
        try await SyncKit.with(schema: schema, app: app) { kit in
            let phone = try await kit.device("phone")
            let tablet = try await kit.device("tablet")
            try await phone.write("INSERT INTO note VALUES ('n1', 'first')")
            try await kit.converge()
            let slow = ConflictResolver { _ in
                try await Task.sleep(for: .milliseconds(200))
                return .keepLocal
            }
            try await phone.weir.setResolver(slow, for: "note")
            try await tablet.write("UPDATE note SET title = 'theirs'")
            try await tablet.sync()
            try await phone.write("UPDATE note SET title = 'mine'")
            try await kit.converge()
            #expect(try await tablet.texts("SELECT title FROM note") == ["mine"])
            #expect(try await phone.weir.keptEdits() == [])
        }
    }

    @Test func whatCannotBeSentIsReported() async throws {
        try await withTwo { kit, phone, _ in
            try await phone.write("INSERT INTO todo (id, title, due) VALUES ('t1', 'Buy milk', x'00')")
            let failure = await #expect(throws: ConvergenceFailure.self) { try await kit.converge() }
            #expect(failure?.findings.first?.hasPrefix("phone has changes of 1 rows") == true, "\(failure as Any)")
        }
    }

    @Test func anOfflineDeviceAndAStoppedServerAreNamed() async throws {
        try await withTwo { kit, phone, _ in
            phone.network.goOffline()
            try await kit.server.stop()
            let failure = await #expect(throws: ConvergenceFailure.self) { try await kit.converge() }
            #expect(
                failure?.findings == [
                    "the server is stopped: call server.start() before",
                    "phone is offline: call network.goOnline() before",
                ])
            phone.network.goOnline()
            try await kit.server.start()
            try await kit.converge()
        }
    }

    @Test func twoSpellingsOfOneValueAreNoDifference() async throws {
        try await withTwo { kit, phone, tablet in
            try await phone.write(
                "INSERT INTO todo (id, title, due, price) VALUES ('t1', 'a', '2026-01-02 03:04:05', 1.5)")
            try await kit.converge()
            try await tablet.write(
                "INSERT INTO todo (id, title, due) VALUES ('t2', 'b', '2026-01-02T05:04:05.000+02:00')")
            try await kit.converge()
        }
    }

    // MARK: Networks

    @Test(arguments: NetworkFault.allCases) func noFaultLosesOrDoublesAnEdit(fault: NetworkFault) async throws {
        try await withTwo { kit, phone, tablet in
            try await phone.write("INSERT INTO list VALUES ('l1', 'Home')")
            phone.network.failNext(fault)
            do { try await phone.sync() } catch is SyncError {}
            #expect(phone.network.log.contains { $0.hasSuffix(" \(fault.rawValue)") }, "\(phone.network.log)")
            try await phone.sync()
            try await kit.converge()
            #expect(try await tablet.texts("SELECT title FROM list") == ["Home"])
            #expect(try await phone.weir.keptEdits() == [])
        }
    }

    @Test func theSameSeedGivesTheSameFaults() async throws {
        func log(_ seed: UInt64) async throws -> [String] {
            try await SyncKit.with(schema: TodoApp.schema, seed: seed) { kit in
                let phone = try await kit.device("phone")
                kit.injectFaults(percent: 50)
                for _ in 0..<10 { do { try await phone.sync() } catch is SyncError {} }
                return phone.network.log
            }
        }
        let first = try await log(7)
        #expect(try await log(7) == first)
        #expect(try await log(8) != first)
    }

    @Test func aDelayedRequestArrivesWhenTheTestsClockSaysSo() async throws {
        try await withTwo { kit, phone, tablet in
            try await phone.write("INSERT INTO list VALUES ('l1', 'Home')")
            phone.network.delay = .seconds(5)
            let syncing = Task { try await phone.sync() }
            try await kit.clock.delayedRequests()
            kit.clock.advance(by: .seconds(4))
            try await tablet.sync()
            #expect(try await tablet.texts("SELECT title FROM list") == [])
            phone.network.delay = .zero
            kit.clock.advance(by: .seconds(1))
            try await syncing.value
            try await tablet.sync()
            #expect(try await tablet.texts("SELECT title FROM list") == ["Home"])
        }
    }

    @Test func theAnswerOfARequestDuringWhichADeviceWasOfflineIsLost() async throws {
        try await withTwo { kit, phone, tablet in
            try await phone.write("INSERT INTO list VALUES ('l1', 'Home')")
            phone.network.delay = .seconds(5)
            let syncing = Task { try await phone.sync() }
            try await kit.clock.delayedRequests()
            phone.network.goOffline()
            phone.network.goOnline()
            phone.network.delay = .zero
            kit.clock.advance(by: .seconds(5))
            await #expect(throws: SyncError.self) { try await syncing.value }
            try await kit.converge()
            #expect(try await tablet.texts("SELECT title FROM list") == ["Home"])
        }
    }

    @Test func devicesThatAreMadeLaterHaveTheFaultsToo() async throws {
        try await SyncKit.with(schema: TodoApp.schema, app: TodoApp.app) { kit in
            kit.injectFaults(percent: 100, kinds: [.lostRequest])
            let phone = try await kit.device("phone")
            await #expect(throws: SyncError.self) { try await phone.sync() }
        }
    }

    // MARK: The server

    @Test func aStepOfTheSchemaThatIsRefusedLeavesTheServerAsItWas() async throws {
        try await withTwo { kit, phone, tablet in
            await #expect(throws: (any Error).self) {
                try await kit.server.upgrade(schema: "tables: { other: { columns: { title: text } } }")
            }
            try await phone.write("INSERT INTO list VALUES ('l1', 'Home')")
            try await kit.converge()
            #expect(try await tablet.texts("SELECT title FROM list") == ["Home"])
        }
    }

    @Test func theServerKeepsWhatItHasAcknowledgedOverARestart() async throws {
        try await withTwo { kit, phone, tablet in
            try await phone.write("INSERT INTO list VALUES ('l1', 'Home')")
            try await phone.sync()
            try await kit.server.stop()
            await #expect(throws: SyncError.self) { try await tablet.sync() }
            try await kit.server.start()
            try await tablet.sync()
            #expect(try await tablet.texts("SELECT title FROM list") == ["Home"])
        }
    }

    @Test func aColumnThatTheServerGainsIsSentThen() async throws {
        try await withTwo(schema: Colors.before, app: Colors.app) { kit, phone, tablet in
            try await phone.write("INSERT INTO list VALUES ('l1', 'Home', 'red')")
            try await phone.sync()
            try await kit.server.upgrade(schema: "tables: { list: { columns: { title: text, color: text } } }")
            try await kit.converge()
            #expect(try await tablet.texts("SELECT color FROM list") == ["red"])
        }
    }

    @Test func theDefaultOfAColumnThatTheServerGainsIsInTheRowsOfEveryDevice() async throws {
        try await withTwo(schema: Colors.before, app: Colors.app) { kit, phone, tablet in
            try await phone.write("INSERT INTO list (id, title) VALUES ('l1', 'Home'), ('l2', 'Work')")
            for device in [phone, tablet] { try await device.sync() }
            try await phone.write("UPDATE list SET color = 'red' WHERE id = 'l2'")
            try await kit.server.upgrade(schema: Colors.withDefault)
            // Also with a device that was never there before.
            try await kit.converge()
            for device in [phone, tablet] {
                #expect(try await device.texts("SELECT color FROM list ORDER BY id") == ["gray", "red"])
            }
        }
    }

    /// The server gives the row the default, and need not send it to the device that has created it.
    @Test func aRowOfABatchThatWasFrozenBeforeTheServerGainedAColumnHasItsDefault() async throws {
        try await SyncKit.with(schema: Colors.before, app: Colors.app) { kit in
            let phone = try await kit.device("phone")
            try await kit.converge()
            try await phone.write("INSERT INTO list (id, title) VALUES ('l1', 'Home')")
            phone.network.failNext(.lostRequest)
            await #expect(throws: SyncError.self) { try await phone.sync() }
            try await kit.server.upgrade(schema: Colors.withDefault)
            // A new start of an app with tokens pulls first, and learns the schema.
            await phone.weir.close()
            let weir = try await Weir.open(phone.file, tables: ["list"])
            try await weir.attach(
                phone.account, server: TestServer.url, options: SyncOptions(transport: phone.network)
            ) { phone.account }
            try await weir.sync()
            await weir.close()
            #expect(try await phone.texts("SELECT color FROM list") == ["gray"])
        }
    }

    @Test func theAppsOwnCodeLogsInWithTheAccountsNameAsItsToken() async throws {
        try await withTwo { kit, phone, _ in
            try await phone.write("INSERT INTO list VALUES ('l1', 'Home')")
            try await phone.sync()
            let folder = try TemporaryFolder()
            try folder.write([], to: "app.sqlite")
            let file = folder.file("app.sqlite")
            let database = try Database(path: file)
            try database.execute(TodoApp.app.createTables)
            let weir = try await Weir.open(URL(fileURLWithPath: file), tables: TodoApp.app.tables)
            try await weir.attach(
                phone.account, server: TestServer.url, options: SyncOptions(transport: kit.server.transport)
            ) { phone.account }
            try await weir.sync()
            #expect(try database.map("SELECT title FROM list") { $0.string(at: 0) } == ["Home"])
            await weir.close()
        }
    }

    @Test func aSchemaThatIsWrongSaysWhere() async throws {
        let error = await #expect(throws: (any Error).self) {
            try await SyncKit(schema: "tables:\n  list:\n    columns:\n      title: txt\n")
        }
        #expect("\(error as Any)".contains("4:14"), "\(error as Any)")
    }

    // MARK: Seeds

    @Test func aSeedThatFailsIsNamed() async throws {
        struct Wrong: Error {}
        var played: [UInt64] = []
        let failure = await #expect(throws: SeedFailure.self) {
            try await Seeds.run(1...9) { seed in
                played.append(seed)
                if seed == 4 { throw Wrong() }
            }
        }
        #expect(played == [1, 2, 3, 4])
        #expect(failure?.description == "seed 4 fails (WEIR_TEST_SEED=4 runs it alone): Wrong()")
    }
}
