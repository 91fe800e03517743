import Fuzzing
import Testing
import WeirClient
import WeirTesting

/// Changes that the server does not store, decided about by users and resolvers in every way.
@Suite struct ResolvingTests {
    @Test func devicesConvergeHoweverTheirConflictsAreDecided() async throws {
        var endings: Set<KeptEdit.Ending> = []
        try await Seeds.run(TestLength.seeds(20, short: 8, long: 200)) { seed in
            try await SyncKit.with(schema: ResolvingRun.schema, app: ResolvingRun.app, seed: seed) { kit in
                let run = try await ResolvingRun(kit)
                try await run.play()
                for device in kit.devices {
                    #expect(try await device.weir.keptEdits() == [], "\(device.name), seed \(seed)")
                    #expect(try await device.weir.pendingRows() == 0, "\(device.name), seed \(seed)")
                    endings.formUnion(try await device.weir.conflictLog(limit: 1000).compactMap(\.ending))
                }
            }
        }
        // Otherwise it was no test of decisions.
        #expect(endings == [.keptLocal, .acceptedServer, .merged, .sentAgain, .removed, .deletionWon])
    }
}

/// Three devices whose users edit few rows at random over a faulty network, and decide about what was not stored.
private final class ResolvingRun {
    /// What a device's resolver of a table does.
    private enum Resolver: CaseIterable {
        case none
        case keepLocal
        case acceptServer
        case mergeColumns
        case larger
        case revive

        /// `nil`: the user decides.
        var conflictResolver: ConflictResolver? {
            switch self {
            case .none: nil
            case .keepLocal: .keepLocal
            case .acceptServer: .acceptServer
            case .mergeColumns: .mergeColumns
            case .larger:
                ConflictResolver { edit in
                    guard let server = edit.server else { return nil }
                    return .merge(
                        Dictionary(
                            uniqueKeysWithValues: edit.local.map { name, local in
                                let other = server[name] ?? .null
                                return (name, local.description < other.description ? other : local)
                            }))
                }
            // An edit wins over a deletion.
            case .revive: ConflictResolver(deletionsWin: false) { $0.isDeletion ? .acceptServer : .keepLocal }
            }
        }
    }

    /// What a user does about a change that was not stored.
    private enum Decision: CaseIterable {
        case keepLocal
        case acceptServer
        case merge
        case editAgain
        case remove
    }

    /// Each has the name of its policy.
    private static let tables = ["checkBase", "lastSyncWins", "lastWriteWins"]

    static let schema =
        "tables:\n"
        + tables.map { table in
            """
              \(table):
                policy: \(table)
                columns:
                  title: { type: text, nullable: false, length: 20 }
                  body: text

            """
        }.joined()

    static let app = SyncKit.App(
        createTables: tables.map {
            "CREATE TABLE \($0) (id TEXT PRIMARY KEY NOT NULL, title TEXT NOT NULL, body TEXT);"
        }.joined(), tables: tables)

    private let kit: SyncKit
    private var random: TestRandom
    /// By device, for each table.
    private var resolvers: [String: [Resolver]] = [:]
    private var texts = 0

    init(_ kit: SyncKit) async throws {
        self.kit = kit
        random = TestRandom(seed: kit.seed)
        for name in ["phone", "tablet", "laptop"] {
            let device = try await kit.device(name)
            resolvers[name] = Self.tables.map { _ in one(of: Resolver.allCases) }
            try await setResolvers(of: device)
        }
    }

    func play() async throws {
        kit.injectFaults(percent: 20)
        for _ in 0..<120 { try await step(one(of: kit.devices)) }
        for device in kit.devices { device.network.goOnline() }
        for device in kit.devices { device.network.faults = .none }
        for device in kit.devices { try await decideAboutEverything(device) }
        try await kit.converge()
    }

    private func one<Element>(of elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &random)]
    }

    private func number(below end: Int) -> Int { Int.random(in: 0..<end, using: &random) }

    private func step(_ device: TestDevice) async throws {
        switch number(below: 20) {
        case ..<10: try await edit(device)
        case 10:
            try await device.restart()
            try await setResolvers(of: device)
        case 11: device.network.isOnline ? device.network.goOffline() : device.network.goOnline()
        case 12: try await device.weir.discard(one(of: Self.tables), .text(id()))
        case 13, 14: for edit in try await device.weir.keptEdits() { try await decide(edit, device) }
        default: do { try await sync(device) } catch is SyncError {}
        }
    }

    /// What resolvers decide is written before the next step, so that a seed always plays the same ones.
    private func sync(_ device: TestDevice) async throws {
        do {
            try await device.sync()
        } catch {
            await device.weir.finishResolving()
            throw error
        }
        await device.weir.finishResolving()
    }

    private func setResolvers(of device: TestDevice) async throws {
        for (table, resolver) in zip(Self.tables, resolvers[device.name] ?? []) {
            try await device.weir.setResolver(resolver.conflictResolver, for: table)
        }
        await device.weir.finishResolving()
    }

    // MARK: Users

    private func id() -> String { "r\(number(below: 3))" }

    /// One of ten titles is longer than the server takes.
    private func text() -> SQLValue {
        texts += 1
        return .text("text \(texts)" + (random.chance(10) ? String(repeating: ".", count: 20) : ""))
    }

    private func edit(_ device: TestDevice) async throws {
        let (table, id) = (one(of: Self.tables), SQLValue.text(id()))
        switch number(below: 6) {
        case 0: try await device.write("DELETE FROM \(table) WHERE id = ?1", [id])
        case 1, 2: try await device.write("UPDATE \(table) SET title = ?2 WHERE id = ?1", [id, text()])
        case 3, 4: try await device.write("UPDATE \(table) SET body = ?2 WHERE id = ?1", [id, text()])
        default: try await put(table, id, device)
        }
    }

    private func put(_ table: String, _ id: SQLValue, _ device: TestDevice) async throws {
        try await device.write(
            """
            INSERT INTO \(table) (id, title, body) VALUES (?1, ?2, ?3)
            ON CONFLICT (id) DO UPDATE SET title = excluded.title, body = excluded.body
            """, [id, text(), text()])
    }

    private func decide(_ edit: KeptEdit, _ device: TestDevice) async throws {
        switch one(of: Decision.allCases) {
        case .keepLocal:
            do {
                try await device.weir.resolve(edit, .keepLocal)
            } catch WeirError.taken {
                // The row is gone, and its title with it.
                try await device.weir.resolve(edit, .acceptServer)
            }
        case .acceptServer: try await device.weir.resolve(edit, .acceptServer)
        case .merge: try await device.weir.resolve(edit, .merge(["title": text()]))
        case .editAgain where edit.isDeletion:
            try await device.write("DELETE FROM \(edit.table) WHERE id = ?1", [edit.key])
        case .editAgain: try await put(edit.table, edit.key, device)
        // What the server does not have would stay on this device alone.
        case .remove where edit.version == nil: try await device.weir.resolve(edit, .acceptServer)
        case .remove: try await device.weir.removeKeptEdits(through: edit.number)
        }
    }

    /// Decides until nothing is left to decide and to send: what is decided may be refused as well.
    private func decideAboutEverything(_ device: TestDevice) async throws {
        for _ in 0..<100 {
            try await sync(device)
            let kept = try await device.weir.keptEdits()
            for edit in kept { try await decide(edit, device) }
            if kept.isEmpty, try await device.weir.pendingRows() == 0 { return }
        }
    }
}
