import Testing
import WeirClient

/// What is known of the rows with which a trigger of the app rolls back the transaction.
@Suite struct RefusalsTests {
    private static let trigger =
        "CREATE TRIGGER guard BEFORE INSERT ON item WHEN NEW.title = 'bad' BEGIN SELECT RAISE(ROLLBACK, 'no'); END"

    private func apply(_ title: String?, at timeStamp: Int64, to app: SyncedApp, _ file: ClientFile) throws {
        let values = title.map { #"{"title":"\#($0)"}"# } ?? "{}"
        let answer = try SyncAnswer(
            json: Array(
                """
                {"syncId":"abc","epoch":"e1","schemaVersion":"s1","knowledge":[],"hasMore":false,"revoked":[],"resync":[],
                "changes":[{"table":"item","id":"x","syncId":"abc","timeStamp":\(timeStamp),"deleted":\(title == nil),
                "values":\(values)}]}
                """.utf8))
        var steps = AnswerSteps(answer, try Applying(file, app.schema, account: "abc"))
        while try steps.next() {}
    }

    @Test func areKnownOfTheVersionsThatWaitAlone() throws {
        let app = try SyncedApp.withItem(Self.trigger)
        let file = app.opened
        for timeStamp: Int64 in [1001, 1002] {
            // It is tried once.
            #expect(throws: (any Error).self) { try apply("bad", at: timeStamp, to: app, file) }
            for _ in 1...2 { try apply("bad", at: timeStamp, to: app, file) }
            #expect(file.refusals.count == 1)
        }
        try apply("good", at: 1003, to: app, file)
        #expect(file.refusals.count == 0)
        #expect(try app.query("SELECT title FROM item WHERE id = 'x'") == ["'good'"])
        try apply(nil, at: 1004, to: app, file)
        #expect(throws: (any Error).self) { try apply("bad", at: 1005, to: app, file) }
        try apply(nil, at: 1006, to: app, file)
        #expect(file.refusals.count == 0)
    }
}
