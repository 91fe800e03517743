import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Outcomes of batches where the file, or the server, is not what it was when the batch was frozen.
@Suite struct SettlingTests {
    private static let both = Device.tables.merging(["tag": ["name": "text"]]) { $1 }

    /// A device with two tables whose edits, one of each, are in a batch without outcome.
    private func sending(
        _ server: ContractServer, _ fault: Fault, _ sql: String = "UPDATE tag SET name = 'T2'"
    ) async throws -> Device {
        let device = try await Device(
            Device.schema + "; CREATE TABLE tag (id TEXT PRIMARY KEY, name TEXT)", tables: ["item", "tag"])
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL); INSERT INTO tag VALUES ('t', 'T')")
        try await device.weir.sync()
        try device.run("UPDATE item SET note = 'n'; \(sql)")
        try await device.sync(with: server, losing: fault)
        await device.weir.close()
        return device
    }

    private func open(_ device: Device, _ server: ContractServer, _ tables: [String]) async throws -> Weir {
        let weir = try await Weir.open(URL(fileURLWithPath: device.folder.file()), tables: tables)
        try await weir.attach("abc", server: Device.url, options: Device.options(server))
        return weir
    }

    @Test(arguments: [false, true]) func aBatchWithRowsOfATableThatIsNotListedForAWhileIsSettled(
        isRefused: Bool
    ) async throws {
        let refusal = isRefused ? "outcome_expired" : nil
        let server = ContractServer(Self.both)
        let device = try await sending(server, refusal == nil ? .lostAnswer : .lostRequest)
        server.state.withLock { $0.refusal = refusal }
        let older = try await open(device, server, ["item"])
        try await older.sync()
        #expect(try await older.pendingRows() == 0)
        await older.close()
        let newer = try await open(device, server, ["item", "tag"])
        try await newer.sync()
        try device.run("UPDATE item SET note = 'n2'; INSERT INTO tag VALUES ('u', 'U')")
        try await newer.sync()
        #expect(try await newer.pendingRows() == 0)
        #expect(
            server.live.map { $0.prefix { $0 != "}" } } == [
                #"item a {"note":"n2","title":"A""#, #"tag t {"name":"T2""#, #"tag u {"name":"U""#,
            ])
        await newer.close()
    }

    @Test func aChangeThatIsRefusedForATableThatIsNotListedAnyMoreIsKeptAside() async throws {
        let server = ContractServer(Self.both)
        let device = try await sending(server, .lostRequest)
        server.state.withLock { $0.tables["tag"] = nil }
        let weir = try await open(device, server, ["item"])
        try await weir.sync()
        let kept = try await weir.keptEdits()
        #expect(kept.map(\.table) == ["tag"] && kept.first?.code == "unknown_table")
        #expect(kept.first?.change.contains("T2") == true)
        await weir.close()
    }

    @Test(arguments: ["UPDATE tag SET name = 'T2'", "DELETE FROM tag"])
    func aChangeThatIsRefusedWithoutARowIsTakenBackOnceItsTableIsListedAgain(sql: String) async throws {
        for isChangedMeanwhile in [false, true] {
            let server = ContractServer(Self.both)
            let device = try await sending(server, .lostRequest, sql)
            // It refuses tables that it does not know before it looks for the row.
            server.state.withLock { $0.tables["tag"] = nil }
            let older = try await open(device, server, ["item"])
            try await older.sync()
            #expect(try await older.keptEdits().map(\.table) == ["tag"])
            server.state.withLock { $0.tables = Self.both }
            if isChangedMeanwhile {
                server.write("tag", "t", ["name": "theirs"])
                try await older.sync()
            }
            await older.close()
            let newer = try await open(device, server, ["item", "tag"])
            try device.run("INSERT INTO tag VALUES ('u', 'U')")
            try await newer.sync()
            let first = isChangedMeanwhile ? "theirs" : "T"
            #expect(try device.rows("SELECT id || ' ' || name FROM tag ORDER BY id") == ["t \(first)", "u U"])
            #expect(try await newer.pendingRows() == 0)
            #expect(try await newer.parkedRows().isEmpty)
            // Only once.
            let pulled = server.requests.count
            await newer.close()
            let again = try await open(device, server, ["item", "tag"])
            try await again.sync()
            #expect(server.requests[pulled...].allSatisfy { $0.continuesFromAVector })
            await again.close()
        }
    }

    @Test func aChangeOfATableThatTheServerHasRetiredIsKeptAside() async throws {
        let server = ContractServer(Self.both)
        let device = try await sending(server, .lostRequest)
        server.state.withLock { ($0.tables["tag"], $0.schemaVersion) = (nil, "s2") }
        let weir = try await open(device, server, ["item", "tag"])
        try await weir.sync()
        let kept = try await weir.keptEdits()
        #expect(kept.map(\.table) == ["tag"] && kept.first?.change.contains("T2") == true)
        await weir.close()
    }

    @Test func aRowThatCannotHaveTheServersValuesAgainWaits() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device(
            "CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT UNIQUE, note TEXT, more TEXT)")
        try await device.attach(server)
        try device.run("INSERT INTO item (id, title) VALUES ('a', 'x')")
        try await device.weir.sync()
        try device.run("UPDATE item SET title = 'y', note = 'n'; INSERT INTO item (id, title) VALUES ('b', 'x')")
        // The server refuses the first change before it looks for the row.
        let refused = #"{"status":"refused","code":"value_too_large","message":"m","row":null}"#
        let transport = ScriptedTransport { request, _ in
            let body = String(decoding: request.body, as: UTF8.self)
            guard let first = body.range(of: #"{"table""#), let second = body.range(of: #","# + #"{"table""#) else {
                return try await server.send(request)
            }
            var rest = request
            rest.body = Array(body.replacingCharacters(in: first.lowerBound...second.lowerBound, with: "").utf8)
            var response = try await server.send(rest)
            let text = String(decoding: response.body, as: UTF8.self)
            response.body = Array(text.replacing(#""results":["#, with: #""results":["# + refused + ",").utf8)
            return response
        }
        try await device.attach(transport)
        try await device.weir.sync()
        #expect(try await device.weir.keptEdits().map(\.code) == ["value_too_large"])
        #expect(try await device.weir.parkedRows().map(\.id) == ["a"])
        try device.run("DELETE FROM item WHERE id = 'b'")
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows() == ["a x -"])
    }

    @Test func anAppsConflictClauseDoesNotDecideAboutTheServersRows() async throws {
        for clause in ["REPLACE", "IGNORE"] {
            let server = ContractServer(Device.tables)
            let device = try await Device(
                "CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT UNIQUE ON CONFLICT \(clause), note TEXT)")
            try await device.attach(server)
            server.write("item", "a", ["title": "x"])
            try await device.weir.sync()
            server.write("item", "b", ["title": "x"])
            try await device.weir.sync()
            #expect(try device.rows() == ["a x -"])
            #expect(try await device.weir.parkedRows().map(\.id) == ["b"])
            server.write("item", "a", ["title": "y"])
            try await device.weir.sync()
            #expect(try device.rows() == ["a y -", "b x -"])
        }
    }

    @Test func anIdThatIsAnotherSpellingOfAKeyIsAnotherRow() async throws {
        try await expectOtherRows("INTEGER", "7", ["+7", "007"])
        let uuid = "0a000000-0000-0000-0000-000000000001"
        try await expectOtherRows("BLOB", uuid, [uuid.uppercased()])
    }

    private func expectOtherRows(_ type: String, _ id: String, _ others: [String]) async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device("CREATE TABLE item (id \(type) PRIMARY KEY, title TEXT, note TEXT)")
        try await device.attach(server)
        server.write("item", id, ["title": "first"])
        for other in others { server.write("item", other, ["title": "another"]) }
        try await device.weir.sync()
        #expect(try device.rows("SELECT title FROM item") == ["first"])
        #expect(try await device.weir.parkedRows().map(\.id) == others)
        try device.run("UPDATE item SET note = 'n'")
        try await device.weir.sync()
        #expect(server.live.filter { $0.contains(#""note":"n""#) } == [#"item \#(id) {"note":"n","title":"first"} 2"#])
    }

    /// With the transaction, ROLLBACK ends what turns capturing off.
    @Test(arguments: ["ABORT", "ROLLBACK"])
    func rowsThatATriggerOfTheAppRefusesWaitAndTheOthersAreWritten(way: String) async throws {
        let guards = ["INSERT": "NEW.title = 'bad'", "UPDATE": "NEW.title = 'bad'", "DELETE": "OLD.title = 'kept'"]
            .map {
                "; CREATE TRIGGER guard\($0) BEFORE \($0) ON item WHEN \($1) BEGIN SELECT RAISE(\(way), 'no'); END"
            }
        let server = ContractServer(Device.tables)
        let device = try await Device(Device.schema + guards.joined())
        server.write("item", "b", ["title": "B"])
        server.write("item", "c", ["title": "kept"])
        try await device.attach(server)
        try await device.weir.sync()
        server.write("item", "a", ["title": "bad"])
        server.write("item", "b", ["title": "bad"])
        server.write("item", "c", nil)
        server.write("item", "d", ["title": "D"])
        try device.run("INSERT INTO item VALUES ('mine', 'M', NULL)")
        try await device.weir.sync()
        #expect(try device.rows() == ["b B -", "c kept -", "d D -", "mine M -"])
        #expect(try await device.weir.parkedRows().map(\.id).sorted() == ["a", "b", "c"])
        #expect(try await device.weir.parkedRows().allSatisfy { $0.reason.contains("no") })
        // Nothing of the server's was taken for the app's.
        #expect(server.live.last == #"item mine {"note":null,"title":"M"} 1"#)
        #expect(try await device.weir.pendingRows() == 0)
        // A later version is tried, and after a new start those that wait.
        server.write("item", "b", ["title": "B2"])
        try await device.weir.sync()
        #expect(try device.rows("SELECT title FROM item WHERE id = 'b'") == ["B2"])
        try device.run("DROP TRIGGER guardINSERT; DROP TRIGGER guardDELETE")
        try await device.restart()
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows() == ["a bad -", "b B2 -", "d D -", "mine M -"])
        #expect(try await device.weir.parkedRows().isEmpty)
    }
}
