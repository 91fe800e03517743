import Foundation
import Synchronization
import TestResources
import WeirClient

/// Plays a script, and says what did not hold.
final class ConvergenceRun {
    private let script: ConvergenceScript
    private let server = ContractServer(ConvergingApp.serverTables)
    private var apps: [ConvergingApp] = []
    private var failures: [String] = []
    /// Of each device, texts that only its batch has, since their rows went with their owner.
    private var waiting: [Int: Set<String>] = [:]

    private init(_ script: ConvergenceScript) { self.script = script }

    /// - Returns: what did not hold.
    static func play(_ script: ConvergenceScript) async -> [String] {
        let run = ConvergenceRun(script)
        do {
            try await run.play()
        } catch {
            run.failures.append("\(error)")
        }
        return run.failures
    }

    private func play() async throws {
        server.state.withLock { state in
            (state.pageRows, state.shownRows, state.policy) = (script.pageRows, script.shownRows, script.policy)
        }
        for number in 0..<script.devices { apps.append(try await ConvergingApp(number, script, server)) }
        for app in apps { try await ignoringFaults { try await app.attach(app.network) } }
        for step in script.steps {
            do {
                try await play(step)
            } catch {
                failures.append("\(step): \(error)")
                return
            }
        }
        try await end()
    }

    /// What a network may do is reported, and repeated later.
    private func ignoringFaults(_ body: () async throws -> Void) async throws {
        do { try await body() } catch is SyncError {} catch WeirError.notAttached {}
    }

    // MARK: Steps

    private func play(_ step: ConvergenceScript.Step) async throws {
        switch step {
        case .write(let number, let sql): try await apps[number].write(sql)
        case .writeNew(let number, let sql): if apps[number].isUpgraded { try await apps[number].write(sql) }
        case .sync(let number): try await sync(apps[number]) { try await $0.device.weir.sync() }
        case .resolve(let number, let decision): try await resolve(apps[number], decision)
        case .restart(let number): try await restart(apps[number]) { try await $0.restart() }
        case .kill(let number, let statement): try await kill(apps[number], statement)
        case .restartServer(let number, let request, let isApplied):
            try await restartServer(apps[number], request, isApplied)
        case .upgradeServer: upgradeServer()
        case .upgradeApp(let number):
            guard server.state.withLock({ $0.tables["tag"] != nil }) else { return }
            try await restart(apps[number]) { try await $0.upgrade() }
        case .other(let owner, let table, let number, let value):
            let id = ConvergenceScript.id(owner, table, number)
            server.write(table, id, value.map { [table == "list" ? "name" : "title": $0] }, owner: owner)
        case .link(let owners): server.state.withLock { $0.links = owners }
        case .expireOutcome: server.state.withLock { $0.refusal = "outcome_expired" }
        case .changeHistory(let epoch): server.state.withLock { $0.changeHistory(to: epoch) }
        }
    }

    /// A decision that a constraint or an owner forbids is not carried out.
    private func resolve(_ app: ConvergingApp, _ decision: ConvergenceScript.Decision) async throws {
        let weir = app.device.weir
        if decision == .remove { return try await weir.removeKeptEdits(through: .max) }
        for edit in try await weir.keptEdits() {
            let resolution: Resolution =
                switch decision {
                case .keepLocal: .keepLocal
                case .acceptServer: .acceptServer
                case .merge, .remove: .merge(edit.local)
                }
            do { try await weir.resolve(edit, resolution) } catch WeirError.taken {} catch WeirError.notGranted {
            } catch WeirError.unsupportedTable {}
        }
    }

    private func restart(_ app: ConvergingApp, _ body: (ConvergingApp) async throws -> Void) async throws {
        try await body(app)
        try await ignoringFaults { try await app.attach(app.network) }
    }

    /// Syncs, to an end; a text that is gone afterwards must be at the server, in the batch that is sent, or kept aside.
    private func sync(_ app: ConvergingApp, _ body: (ConvergingApp) async throws -> Void) async throws {
        let before = try app.texts().union(waiting[app.number] ?? [])
        server.state.withLock { $0.requestsLeft = 1000 }
        try await ignoringFaults { try await body(app) }
        await app.device.weir.finishResolving()
        let isEndless = server.state.withLock { state in
            defer { state.requestsLeft = .max }
            return state.requestsLeft == 0
        }
        if isEndless { failures.append("device \(app.number) syncs without end") }
        let left = try app.texts().union(server.state.withLock { $0.storedTexts })
        waiting[app.number] = try before.subtracting(left).intersection(app.sent())
        let gone = before.subtracting(left).subtracting(waiting[app.number] ?? [])
        if gone.isEmpty { return }
        let kept = try app.kept()
        for text in gone.sorted() where !kept.contains("\"\(text)\"") {
            failures.append("device \(app.number) has lost \(text)")
        }
    }

    private func kill(_ app: ConvergingApp, _ statement: Int) async throws {
        let kill = try Kill(path: app.device.folder.file(), at: statement, app.network)
        try await sync(app) { app in
            try await ignoringFaults {
                try await app.restart()
                try await app.attach(kill)
                try await app.device.weir.sync()
            }
            kill.stop()
            if kill.hasHappened { try await app.continue(after: kill) }
        }
        try await ignoringFaults { try await app.attach(app.network) }
    }

    private func restartServer(_ app: ConvergingApp, _ request: Int, _ isApplied: Bool) async throws {
        let server = server
        let transport = ScriptedTransport { received, number in
            if number < request { return try await server.send(received) }
            if number > request { return .problem(503, "starting") }
            if isApplied { _ = try await server.send(received) }
            throw ScriptedTransport.Lost()
        }
        try await sync(app) { app in
            try await app.attach(transport)
            try await app.device.weir.sync()
        }
        try await ignoringFaults { try await app.attach(app.network) }
    }

    private func upgradeServer() {
        server.state.withLock { state in
            state.tables["item"]?["extra"] = "text"
            state.tables["tag"] = ["name": "text"]
            state.schemaVersion = "s2"
        }
    }

    // MARK: The end

    /// Everyone syncs without faults, in the newest version of the app.
    private func end() async throws {
        upgradeServer()
        for app in apps {
            try await app.upgrade()
            try await app.attach(server)
        }
        for app in apps { await app.device.weir.finishResolving() }
        let own = try apps.map { try $0.own() }
        for _ in 0..<5 {
            // Where two keep their own values, each round decides for one of them.
            for _ in 0..<(3 + script.devices) {
                let before = server.state.withLock { $0.exchanged }
                for app in apps { try await sync(app) { try await $0.device.weir.sync() } }
                // Each further round would be as this one.
                if server.state.withLock({ $0.exchanged }) == before { break }
            }
            if try await !freeSlots() { break }
        }
        let fresh = try await ConvergingApp(script.devices, script, server)
        try await fresh.upgrade()
        try await fresh.attach(server)
        try await fresh.device.weir.sync()
        let (rows, states, parked) = (try fresh.rows(), try fresh.states(), try fresh.parked())
        for (app, own) in zip(apps, own) {
            let pending = try await app.device.weir.pendingRows()
            expect(app, "pending", pending == 0, "\(pending)")
            expect(app, "rows", try app.rows(), rows)
            let forgotten = try app.forgottenTombstones(among: states)
            let known = states.filter { !forgotten.contains($0) }
            expect(app, "states", try app.states().filter { !forgotten.contains($0) }, known)
            expect(app, "own rows", try app.own(), own)
            expect(app, "unexplained rows", try app.unexplained(), [])
            expect(app, "rows that are not synced", try app.unsynced(), [])
            expect(app, "failures while an answer was late", app.network.failures, [])
            expect(app, "outcomes", try app.device.rows("SELECT number FROM weir_outcome WHERE place IS NULL"), [])
            expect(app, "parked rows", try app.parked(), parked)
            expect(app, "repeated decisions", try app.repeated(), [])
        }
        for row in parked where !row.contains("its parent is missing") { failures.append("parked: \(row)") }
    }

    /// Another device gives each row a unique value of its own, of those that have the same, and users take theirs from rows that were not
    /// stored.
    ///
    /// - Returns: whether there were any.
    private func freeSlots() async throws -> Bool {
        let items = server.state.withLock { $0.rows.values.filter { $0.table == "item" && !$0.isDeleted } }
        let bySlot = Dictionary(grouping: items) { $0.values["slot"] as? String }
        let taken = bySlot.filter { $0.key != nil }.flatMap { $0.value.sorted { $0.id < $1.id }.dropFirst() }
        for item in taken { server.write("item", item.id, ["slot": "free \(item.id)"], owner: item.owner) }
        var isOver = taken.isEmpty
        for app in apps where try await app.freeSlots() { isOver = false }
        return !isOver
    }

    private func expect(_ app: ConvergingApp, _ what: String, _ isTrue: Bool, _ found: String) {
        if !isTrue { failures.append("device \(app.number), \(what): \(found)") }
    }

    private func expect(_ app: ConvergingApp, _ what: String, _ found: [String], _ expected: [String]) {
        let (more, fewer) = (found.filter { !expected.contains($0) }, expected.filter { !found.contains($0) })
        expect(app, what, found == expected, "\(more) in place of \(fewer)")
    }
}
