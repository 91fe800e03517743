import ChangeLog
import Ingest
import SyncModel
import Testing

@Suite struct RefusedChangeTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let change: String
        let code: RefusalCode
        let message: String

        init(_ change: String, _ code: RefusalCode, _ message: String) {
            self.change = change
            self.code = code
            self.message = message
        }

        var testDescription: String { change }
    }

    private static let idRule = "is a string of 1 to 255 bytes without NUL"
    private static let long = String(repeating: "x", count: 256)

    static let changes: [Case] = [
        Case("null", .invalidChange, "a change is an object"),
        Case("[]", .invalidChange, "a change is an object"),
        Case("\"note\"", .invalidChange, "a change is an object"),
        Case("{}", .invalidChange, "table is missing"),
        Case(#"{"id":"1"}"#, .invalidChange, "table is missing"),
        Case(#"{"table":null,"id":"1"}"#, .invalidChange, "table is missing"),
        Case(#"{"table":1,"id":"1"}"#, .invalidChange, "table is a string"),
        Case(#"{"table":"note","table":"note","id":"1"}"#, .invalidChange, "table stands there twice"),
        Case(#"{"table":"note"}"#, .invalidChange, "id is missing"),
        Case(#"{"table":"note","id":null}"#, .invalidChange, "id is missing"),
        Case(#"{"table":"note","id":1}"#, .invalidChange, "id \(idRule)"),
        Case(#"{"table":"note","id":""}"#, .invalidChange, "id \(idRule)"),
        Case(#"{"table":"note","id":"a\u0000"}"#, .invalidChange, "id \(idRule)"),
        Case(#"{"table":"note","id":"\#(long)"}"#, .invalidChange, "id \(idRule)"),
        Case(#"{"table":"note","id":"1","id":"1"}"#, .invalidChange, "id stands there twice"),
        Case(#"{"table":"note","id":"1","syncId":""}"#, .invalidChange, "syncId \(idRule)"),
        Case(#"{"table":"note","id":"1","syncId":["ann"]}"#, .invalidChange, "syncId \(idRule)"),
        Case(#"{"table":"note","id":"1","syncId":"ann","syncId":"bob"}"#, .invalidChange, "syncId stands there twice"),
        Case(#"{"table":"note","id":"1","knowledgeId":""}"#, .invalidChange, "knowledgeId \(idRule)"),
        Case(#"{"table":"note","id":"1","knowledgeId":"\#(long)"}"#, .invalidChange, "knowledgeId \(idRule)"),
        Case(#"{"table":"note","id":"1","knowledgeId":"*"}"#, .invalidChange, "knowledgeId: * is no device's name"),
        Case(
            #"{"table":"note","id":"1","knowledgeId":null,"knowledgeId":"k1"}"#, .invalidChange,
            "knowledgeId stands there twice"),
        Case(#"{"table":"note","id":"1","deleted":1}"#, .invalidChange, "deleted is true or false"),
        Case(#"{"table":"note","id":"1","deleted":"true"}"#, .invalidChange, "deleted is true or false"),
        Case(
            #"{"table":"note","id":"1","deleted":true,"deleted":true}"#, .invalidChange, "deleted stands there twice"),
        Case(#"{"table":"note","id":"1","ifBase":0}"#, .invalidChange, "ifBase is true or false"),
        Case(#"{"table":"note","id":"1","ifBase":true,"ifBase":null}"#, .invalidChange, "ifBase stands there twice"),
        Case(#"{"table":"note","id":"1","base":-1}"#, .invalidChange, "base is an integer from 0 to 2^53-1"),
        Case(
            #"{"table":"note","id":"1","base":9007199254740992}"#, .invalidChange, "base is an integer from 0 to 2^53-1"
        ),
        Case(#"{"table":"note","id":"1","base":1.5}"#, .invalidChange, "base is an integer from 0 to 2^53-1"),
        Case(#"{"table":"note","id":"1","base":"1"}"#, .invalidChange, "base is an integer from 0 to 2^53-1"),
        Case(#"{"table":"note","id":"1","base":1,"base":1}"#, .invalidChange, "base stands there twice"),
        Case(
            #"{"table":"note","id":"1","updatedAt":1767323045}"#, .invalidChange,
            "updatedAt is an RFC 3339 time of the years 0001 to 9999 with at most 6 decimals, as a string"),
        Case(
            #"{"table":"note","id":"1","updatedAt":"2026-01-02"}"#, .invalidChange,
            "updatedAt is an RFC 3339 time of the years 0001 to 9999 with at most 6 decimals, as a string"),
        Case(
            #"{"table":"note","id":"1","updatedAt":null,"updatedAt":null}"#, .invalidChange,
            "updatedAt stands there twice"),
        Case(#"{"table":"note","id":"1","values":[]}"#, .invalidChange, "values is an object"),
        Case(#"{"table":"note","id":"1","values":{},"values":{}}"#, .invalidChange, "values stands there twice"),
        Case(
            #"{"table":"note","id":"1","values":{"count":1,"count":1}}"#, .invalidChange, "values names count twice"),
        Case(
            #"{"table":"note","id":"1","values":{"count":null,"co\u0075nt":1}}"#, .invalidChange,
            "values names count twice"),
        Case(#"{"table":"Note","id":"1"}"#, .unknownTable, #"the schema has no table "Note""#),
        Case(#"{"table":"","id":"1"}"#, .unknownTable, #"the schema has no table """#),
        Case(#"{"table":"no\nte\u0000","id":"1"}"#, .unknownTable, #"the schema has no table "no\nte\0""#),
        Case(
            #"{"table":"\#(String(repeating: "é", count: 33))","id":"1"}"#, .unknownTable,
            "the schema has no table \"\(String(repeating: "é", count: 32))…\""),
        Case(
            #"{"table":"x\#(String(repeating: "é", count: 32))","id":"1"}"#, .unknownTable,
            "the schema has no table \"x\(String(repeating: "é", count: 31))…\""),
        Case(#"{"table":"note","id":"1","values":{"Title":"A"}}"#, .unknownColumn, #"note has no column "Title""#),
        Case(#"{"table":"note","id":"1","values":{"id":"A"}}"#, .unknownColumn, #"note has no column "id""#),
        Case(#"{"table":"note","id":"1","values":{"title":1}}"#, .invalidValue, "title takes a string"),
        Case(#"{"table":"note","id":"1","values":{"title":null}}"#, .invalidValue, "title is not nullable"),
        Case(
            #"{"table":"note","id":"1","values":{"title":"12345678901"}}"#, .invalidValue,
            "title takes at most 10 characters"),
        Case(#"{"table":"note","id":"1","values":{"body":"a\u0000"}}"#, .invalidValue, "body holds NUL"),
        Case(#"{"table":"note","id":"1","values":{"count":1.5}}"#, .invalidValue, "count takes 64-bit integers"),
        Case(
            #"{"table":"note","id":"1","values":{"count":[1]}}"#, .invalidValue,
            "count takes a 64-bit integer, as a number or a string"),
        Case(#"{"table":"note","id":"1","values":{"done":"true"}}"#, .invalidValue, "done takes true or false"),
        Case(
            #"{"table":"note","id":"1","values":{"price":"1.001"}}"#, .invalidValue,
            "price takes 4 digits before the point and 2 behind it"),
        Case(
            #"{"table":"note","id":"1","values":{"body":"\#(String(repeating: "x", count: 99))"}}"#, .valueTooLarge,
            "body takes at most 100 bytes of JSON"),
        Case(
            #"{"table":"note","id":"1","syncId":"zoe"}"#, .notGranted, "the caller may not write this owner's data"),
        Case(
            #"{"table":"note","id":"1","syncId":"cat"}"#, .notGranted, "the caller may not write this owner's data"),
    ]

    @Test(arguments: changes)
    func refusesOneChangeByItself(refused: Case) throws {
        let good = #"{"table":"note","id":"9","values":{"body":"\#(String(repeating: "x", count: 98))"}}"#
        let upload = Upload([good, " \(refused.change) ", good])
        let decoded = try upload.admitted(limits: OutcomeLimits(maxValueBytes: 100))
        #expect(decoded.parts.count == 1 && decoded.parts[0].changes.map(\.index) == [0, 2])
        #expect(decoded.refusals == [Refusal(index: 1, code: refused.code, message: refused.message)])
        #expect(decoded.parts[0].summary?.changeCount == 3)
        #expect(decoded.admitted.refusals == [refused.code: 1] && decoded.admitted.changeCount == 3)
        let letter = try #require(decoded.letters.first)
        #expect(decoded.letters.count == 1)
        #expect(letter.upload == UploadReference(partition: 2, offset: 42))
        #expect(letter.logTime == 1_767_323_045_000_000)
        let device = Device(caller: SyncID(unchecked: "ann"), knowledgeID: KnowledgeID(unchecked: "k1"))
        let change = RefusedChanges.Change(decoded.refusals[0], json: Array(refused.change.utf8))
        #expect(letter.subject == .changes(RefusedChanges(device: device, batch: 7, changes: [change])))
    }

    @Test func refusesEachChangeThatIsNotGranted() throws {
        let changes = ["ann", "cat", "bob", "zoe", "cat"].enumerated().map {
            #"{"table":"note","id":"\#($0)","syncId":"\#($1)"}"#
        }
        let decoded = try Upload(changes).admitted()
        #expect(decoded.outline == ["ann 0", "bob 2"])
        #expect(decoded.refusals.map(\.index) == [1, 3, 4])
        #expect(decoded.admitted.refusals == [.notGranted: 3])
        #expect(decoded.parts[0].summary?.otherOwners.map(\.text) == ["bob"])
    }

    @Test func letsTheGreaterOfTwoGrantsCount() throws {
        let upload = Upload([#"{"table":"note","id":"1"}"#]).with(\.grants, [("ann", .write), ("ann", .read)])
        #expect(try upload.admitted().outline == ["ann 0"])
    }

    @Test func sendsLettersToTheCallersPartition() throws {
        let decoded = try Upload([#"{"table":"note","id":"1","syncId":"zoe"}"#]).admitted()
        let record = try #require(decoded.admitted.records.last)
        let partition = Fixture.partitioning.partition(of: SyncID(unchecked: "ann"))
        #expect(record.destination == TopicPartition(.deadLetters, partition))
        #expect(record.key == Array("ann".utf8))
    }
}
