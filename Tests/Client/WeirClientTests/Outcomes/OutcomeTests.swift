import Foundation
import Synchronization
import Testing
import WeirClient

/// What an app is told about what it has written.
@Suite(.timeLimit(.minutes(2))) struct OutcomeTests {
    private func synced(_ server: ContractServer, _ policy: String = "checkBase") async throws -> Device {
        server.state.withLock { $0.policy = policy }
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', 'n'), ('b', 'B', 'n'), ('c', 'C', 'n')")
        try await device.weir.sync()
        return device
    }

    @Test func aWriteIsOneTransactionThatIsCapturedAndNamesItsRows() async throws {
        let device = try await Device(
            Device.schema
                + "; CREATE TABLE child (id INTEGER PRIMARY KEY, item TEXT REFERENCES item ON DELETE CASCADE)",
            tables: ["item", "child"])
        let saved = try await device.weir.write { db in
            try db.execute("INSERT INTO item VALUES (?1, ?2, NULL)", [.text("a"), .text("A")])
            try db.execute("-- a comment\nINSERT INTO child VALUES (1, 'a')")
            let rows = try db.query("UPDATE item SET note = 'n' RETURNING id, note AS text")
            return rows[0]["text"]?.string
        }
        #expect(saved.value == "n")
        #expect(
            saved.rows == [
                RowReference(table: "item", key: .text("a")), RowReference(table: "child", key: .integer(1)),
            ])
        #expect(try await device.weir.pendingRows() == 2)
        // Foreign keys are enforced, and what fails changes nothing.
        await #expect(throws: WeirError.self) {
            try await device.weir.write { db in
                try db.execute("DELETE FROM item")
                try db.execute("INSERT INTO child VALUES (2, 'none')")
            }
        }
        #expect(try device.rows() == ["a A n"])
        #expect(try await device.weir.write { try $0.execute("DELETE FROM item") }.rows.count == 2)
        #expect(try await device.weir.pendingRows() == 2)
    }

    @Test(arguments: [
        "COMMIT", " /* x */ begin", "PRAGMA foreign_keys = OFF", "ATTACH ':memory:' AS x", "DROP TABLE item", "",
        "UPDATE item SET title = 'x'; DELETE FROM item",
    ]) func aWriteRunsSingleStatementsThatChangeRows(sql: String) async throws {
        let device = try await Device(Device.schema + "; INSERT INTO item VALUES ('a', 'A', 'n')")
        await #expect(throws: WeirError.self) { try await device.weir.write { try $0.execute(sql) } }
        #expect(try device.rows() == ["a A n"])
        try await device.weir.write { try $0.execute("/* B */ UPDATE item SET title = 'B'; -- and no more\n ; /* x") }
        #expect(try device.rows() == ["a B n"])
    }

    /// Strings are equal if they differ in how their characters are composed alone.
    @Test func aWriteRunsTheVeryTextOfItsStatements() async throws {
        let device = try await Device()
        // The last two have as many bytes.
        for title in ["\u{E9}", "e\u{301}", "e\u{301}\u{323}", "e\u{323}\u{301}"] {
            try await device.weir.write {
                try $0.execute("INSERT INTO item VALUES (lower(hex(randomblob(16))), '\(title)', NULL)")
            }
        }
        let stored = try device.rows("SELECT hex(title) FROM item ORDER BY 1")
        #expect(stored == ["65CC81", "65CC81CCA3", "65CCA3CC81", "C3A9"])
    }

    @Test func aTransactionThatATriggerHasRolledBackIsNotContinued() async throws {
        let device = try await Device(
            Device.schema + "; CREATE TRIGGER guard BEFORE INSERT ON item WHEN NEW.title = 'bad' "
                + "BEGIN SELECT RAISE(ROLLBACK, 'no'); END")
        await #expect(throws: WeirError.self) {
            try await device.weir.write { db in
                do { try db.execute("INSERT INTO item VALUES ('a', 'bad', NULL)") } catch {}
                try db.execute("INSERT INTO item VALUES ('b', 'B', NULL)")
            }
        }
        #expect(try device.rows().isEmpty)
    }

    @Test func eachRowOfAWriteHasTheServersDecision() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        server.state.withLock { $0.refusedText = "bad" }
        server.write("item", "b", ["title": "theirs"])
        let saved = try await device.weir.write { db in
            try db.execute("UPDATE item SET title = 'A2' WHERE id = 'a'")
            try db.execute("UPDATE item SET title = 'mine' WHERE id = 'b'")
            try db.execute("UPDATE item SET title = 'bad' WHERE id = 'c'")
            try db.execute("INSERT INTO item VALUES ('d', 'D', NULL)")
            try db.execute("INSERT OR IGNORE INTO item VALUES ('a', 'ignored', NULL)")
        }
        try await device.weir.sync()
        let outcomes = try await saved.outcome
        #expect(
            outcomes.map { "\($0.row.key) \($0.status)" }.sorted() == [
                "'a' applied", "'b' conflict", "'c' refused", "'d' applied",
            ])
        let conflict = try #require(outcomes.first { $0.status == .conflict }?.kept)
        #expect(conflict.local == ["title": .text("mine")] && conflict.base == ["title": .text("B")])
        #expect(conflict.server == ["title": .text("theirs"), "note": .text("n")])
        #expect(conflict.conflicting == ["title"])
        let refused = try #require(outcomes.first { $0.status == .refused })
        #expect(refused.code == "value_too_large" && refused.kept?.server?["title"] == .text("C"))
        // The queue goes on, and the file keeps the answers.
        #expect(try await device.weir.pendingRows() == 0)
        try await device.restart()
        let kept = try await device.weir.outcomes()
        #expect(kept.map(\.status) == outcomes.sorted { $0.place < $1.place }.map(\.status))
        #expect(try await device.weir.outcomes(after: kept[1].place).count == 2)
    }

    @Test(arguments: ["lastSyncWins", "lastWriteWins"])
    func aChangeOfADeletedRowIsToldAndCanBeBroughtBack(policy: String) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, policy)
        server.write("item", "a", nil)
        let saved = try await device.weir.write { try $0.execute("UPDATE item SET title = 'late' WHERE id = 'a'") }
        try await device.weir.sync()
        let outcome = try #require(try await saved.outcome.first)
        #expect(outcome.status == .deleted)
        // Nobody has to decide.
        #expect(try await device.weir.keptEdits().isEmpty)
        let kept = try #require(outcome.kept)
        #expect(kept.ending == .deletionWon && kept.local == ["title": .text("late")])
        #expect(try device.rows() == ["b B n", "c C n"])
        let again = try await device.weir.resolve(kept, .keepLocal)
        #expect(again.value && again.rows.map(\.key) == [.text("a")])
        try await device.weir.sync()
        #expect(try await again.outcome.map(\.status) == [.applied])
        #expect(try device.rows() == ["a late n", "b B n", "c C n"])
        #expect(server.live.contains { $0.hasPrefix(#"item a {"note":"n","title":"late"}"#) })
    }

    /// The app has not seen the deletion before either edit, also where it is pulled before the outcome arrives.
    @Test(arguments: ["lastSyncWins", "lastWriteWins"], [false, true])
    func anEditThatFollowsOneOfADeletedRowDoesNotBringItBack(policy: String, isPulledFirst: Bool) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, policy)
        server.write("item", "a", nil)
        let later = "UPDATE item SET note = '2' WHERE id = 'a'"
        try await device.attach(
            isPulledFirst ? FaultyTransport(server, .lostAnswer, at: 0) : device.network(server, writing: later))
        let saved = try await device.weir.write { try $0.execute("UPDATE item SET title = '1' WHERE id = 'a'") }
        if isPulledFirst {
            await #expect(throws: SyncError.self) { try await device.weir.sync() }
            try await device.pull(server)
            try device.run(later)
        }
        try await device.weir.sync()
        try await device.weir.sync()
        if !isPulledFirst { #expect(try await saved.outcome.map(\.status) == [.deleted]) }
        #expect(!server.live.contains { $0.hasPrefix("item a") })
        #expect(try device.rows() == ["b B n", "c C n"])
        let ended = try await device.weir.conflictLog()
        #expect(ended.map(\.local) == [["title": .text("1"), "note": .text("2")], ["title": .text("1")]])
        #expect(ended.first?.base["note"] == .text("n"))
        #expect(ended.allSatisfy { $0.ending == .deletionWon })
        // One that the app makes of a row that it has inserted again does.
        try device.run("INSERT INTO item VALUES ('a', 'again', NULL)")
        try await device.weir.sync()
        #expect(try device.rows() == ["a again -", "b B n", "c C n"])
        #expect(server.live.contains { $0.hasPrefix("item a") })
    }

    @Test func anEditOfADeletedRowDoesNotBringItBackWhereTheTableIsNotListedAsTheOutcomeArrives() async throws {
        let server = ContractServer(Device.tables.merging(["other": ["note": "text"]]) { $1 })
        let device = try await Device(
            Device.schema + "; CREATE TABLE other (id TEXT PRIMARY KEY NOT NULL, note TEXT)", tables: ["item", "other"])
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', 'n'), ('b', 'B', 'n')")
        try await device.weir.sync()
        server.write("item", "a", nil)
        try await device.attach(FaultyTransport(server, .lostAnswer, at: 0))
        try await device.weir.write { try $0.execute("UPDATE item SET title = '1' WHERE id = 'a'") }
        await #expect(throws: SyncError.self) { try await device.weir.sync() }
        try await device.weir.write { try $0.execute("UPDATE item SET note = '2' WHERE id = 'a'") }
        for tables in [["other"], ["item", "other"]] {
            try await device.restart(tables: tables)
            try await device.attach(server)
            try await device.weir.sync()
        }
        #expect(server.live.map { $0.prefix(6) } == ["item b"])
        #expect(try device.rows() == ["b B n"])
        #expect(try await device.weir.conflictLog().map(\.ending) == [.deletionWon, .deletionWon])
    }

    @Test func underLastWriteWinsAnEarlierEditIsAConflict() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, "lastWriteWins")
        server.write("item", "a", ["title": "later"], updatedAt: "2999-01-01T00:00:00.000Z")
        let saved = try await device.weir.write { db in
            try db.execute("UPDATE item SET title = 'earlier' WHERE id = 'a'")
            try db.execute("UPDATE item SET title = 'own' WHERE id = 'b'")
        }
        try await device.weir.sync()
        #expect(
            try await saved.outcome.map { "\($0.row.key) \($0.status)" }.sorted() == ["'a' conflict", "'b' applied"])
        #expect(try device.rows().first == "a later n")
    }

    @Test func editsOfDifferentColumnsBothSurviveAndThoseOfOneFollowThePolicy() async throws {
        for policy in ["lastSyncWins", "lastWriteWins"] {
            let server = ContractServer(Device.tables)
            let device = try await synced(server, policy)
            server.write("item", "a", ["note": "theirs"])
            server.write("item", "b", ["title": "theirs"])
            let saved = try await device.weir.write { try $0.execute("UPDATE item SET title = 'mine' WHERE id <> 'c'") }
            try await device.weir.sync()
            #expect(try await saved.outcome.map(\.status) == [.applied, .applied])
            #expect(try device.rows() == ["a mine theirs", "b mine n", "c C n"])
        }
    }

    @Test func anEditThatFollowsTheBatchHasAnOutcomeOfItsOwn() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        server.write("item", "a", ["note": "theirs"])
        let first = try await device.weir.write { try $0.execute("UPDATE item SET title = '1' WHERE id = 'a'") }
        try await device.sync(with: server, losing: .lostRequest)
        let second = try await device.weir.write { try $0.execute("UPDATE item SET title = '2' WHERE id = 'a'") }
        let third = try await device.weir.write { try $0.execute("UPDATE item SET note = '3' WHERE id = 'a'") }
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try await first.outcome.map(\.status) == [.conflict])
        // Both are one edit, of a row that the app had not seen either.
        let outcomes = [try await second.outcome[0], try await third.outcome[0]]
        #expect(outcomes[0] == outcomes[1] && outcomes[0].status == .conflict)
        #expect(outcomes[0].kept?.local == ["title": .text("2"), "note": .text("3")])
    }

    @Test(arguments: ["outcome_expired", "history_changed"])
    func theChangesOfABatchWithoutAnOutcomeHaveTheirsWithTheNext(refusal: String) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        let saved = try await device.weir.write { try $0.execute("UPDATE item SET title = 'mine' WHERE id = 'a'") }
        server.state.withLock { $0.refusal = refusal }
        try await device.weir.sync()
        #expect(try await saved.outcome.map(\.status) == [.applied])
        #expect(server.live.contains { $0.contains("mine") })
    }

    @Test func aChangeThatIsTakenBackBeforeItsBatchIsSentAgainIsAnswered() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        let saved = try await device.weir.write { try $0.execute("UPDATE item SET title = 'x' WHERE id = 'a'") }
        try await device.sync(with: server, losing: .lostRequest)
        try device.run("UPDATE item SET title = 'A' WHERE id = 'a'")
        server.state.withLock { $0.refusal = "outcome_expired" }
        try await device.weir.sync()
        // Without this the next line would wait forever.
        try #require(try device.rows("SELECT number FROM weir_outcome WHERE place IS NULL").isEmpty)
        #expect(try await saved.outcome.map(\.status) == [.unchanged])
    }

    @Test func aRowThatIsAsTheServerHasItAndOneThatWasTakenBackAreAnswered() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        let unchanged = try await device.weir.write { db in
            try db.execute("UPDATE item SET title = 'x' WHERE id = 'a'")
            try db.execute("UPDATE item SET title = 'A' WHERE id = 'a'")
            try db.execute("INSERT INTO item VALUES ('never', '', NULL)")
            try db.execute("DELETE FROM item WHERE id = 'never'")
        }
        let discarded = try await device.weir.write { try $0.execute("UPDATE item SET title = 'x' WHERE id = 'b'") }
        try await device.weir.discard("item", .text("b"))
        #expect(try await discarded.outcome.map(\.status) == [.discarded])
        try await device.weir.sync()
        #expect(try await unchanged.outcome.map(\.status) == [.unchanged, .unchanged])
    }

    @Test func writesOfOtherConnectionsCanBeAskedAbout() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        let weir = device.weir
        #expect(try await weir.outcome(of: "item", .text("a")).status == .unchanged)
        try device.run("UPDATE item SET title = 'mine' WHERE id IN ('a', 'b')")
        server.write("item", "b", ["title": "theirs"])
        var updates = weir.outcomeUpdates().makeAsyncIterator()
        let outcomes = ["a", "b"].map { id in Task { try await weir.outcome(of: "ITEM", .text(id)) } }
        while try device.rows("SELECT count(*) FROM weir_outcome") != ["2"] { await Task.yield() }
        try await weir.sync()
        #expect(try await outcomes[0].value.status == .applied)
        #expect(try await outcomes[1].value.status == .conflict)
        #expect(try await updates.next()?.count == 2)
        // One that nobody waits for any more.
        try device.run("UPDATE item SET title = 'again' WHERE id = 'a'")
        let cancelled = Task { try await weir.outcome(of: "item", .text("a")) }
        while try device.rows("SELECT count(*) FROM weir_outcome") != ["3"] { await Task.yield() }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        await weir.close()
        #expect(try await updates.next() == nil)
    }

    @Test func aWriteIsNoticedWhileWeirRuns() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try await device.attach(server) { ($0.writeCheck, $0.debounce) = (nil, .zero) }
        try await device.weir.start()
        let saved = try await device.weir.write { try $0.execute("UPDATE item SET title = 'mine' WHERE id = 'a'") }
        #expect(try await saved.outcome.map(\.status) == [.applied])
        await device.weir.close()
    }

    @Test func aRowThatItsOwnerTakesAwayIsRefused() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.links = ["friend"] }
        server.write("item", "x", ["title": "theirs"], owner: "friend")
        let device = try await synced(server)
        server.state.withLock { $0.links = [] }
        // A change that is made after the batch.
        try await device.attach(device.network(server, writing: "UPDATE item SET note = 'mine' WHERE id = 'x'"))
        let saved = try await device.weir.write { try $0.execute("UPDATE item SET title = 'mine' WHERE id = 'x'") }
        try await device.weir.sync()
        #expect(try await saved.outcome.map(\.status) == [.refused])
        let kept = try await device.weir.keptEdits()
        #expect(kept.allSatisfy { ["not_granted", "revoked"].contains($0.code) && $0.owner == "friend" })
        // It cannot become a row of the account's own.
        await #expect(throws: WeirError.notGranted(owner: "friend")) {
            try await device.weir.resolve(kept[0], .keepLocal)
        }
        #expect(try await device.weir.keptEdits().count == kept.count)
        // But again one of the owner's.
        server.state.withLock { $0.links = ["friend"] }
        try await device.weir.sync()
        let again = try await device.weir.resolve(kept[0], .keepLocal)
        try await device.weir.sync()
        #expect(try await again.outcome.map(\.status) == [.applied])
        #expect(server.live.contains { $0.hasPrefix("item x") && $0.contains("mine") })
    }
}
