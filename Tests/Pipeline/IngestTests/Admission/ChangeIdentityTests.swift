import Digest
import SyncModel
import Testing

/// What a change with a `changeId` is recognized by: its id and content, whatever batch it is in.
@Suite struct ChangeIdentityTests {
    private static let note = #""table":"note","id":"1","values":{"title":"A","price":"1.50"}"#

    private func identities(_ changes: [String], rules: Int = 3) throws -> [ChangeIdentity?] {
        let admitted = try Upload(changes).with(\.rules, rules).admitted()
        #expect(admitted.refusals.isEmpty)
        return admitted.parts.flatMap(\.changes).map(\.identity)
    }

    private func identity(_ fields: String) throws -> ChangeIdentity {
        let only = try identities(["{\"changeId\":\"c1\",\(fields)}"])
        return try #require(only.first ?? nil)
    }

    private static func hash(_ id: String) -> [UInt8] { Array(SHA256.digest(of: Array(id.utf8)).prefix(16)) }

    @Test(arguments: 3...5) func isTheHashOfTheIdBeforeRulesVersion6(rules: Int) throws {
        let found = try identities([#"{\#(Self.note),"changeId":"c1"}"#], rules: rules)
        #expect(found[0]?.id.bytes == Self.hash("c1"))
    }

    @Test func beginsWithTheNumberOfTheId() throws {
        let ids = ["c1": 1, "sqlitenow:70000": 70_000, "9": 9, "c": nil, "1c": nil]
        for (id, number) in ids {
            let found = try identities([#"{\#(Self.note),"changeId":"\#(id)"}"#], rules: 6)
            let expected = number.map { number in
                (0..<6).map { UInt8(truncatingIfNeeded: number >> (40 - 8 * $0)) } + Self.hash(id).prefix(10)
            }
            #expect(found[0]?.id.bytes == expected ?? Self.hash(id), "\(id)")
        }
    }

    @Test func anotherIdIsAnother() throws {
        let identity = try identity(Self.note)
        let other = try identities([#"{\#(Self.note),"changeId":"c2"}"#])
        #expect(other.count == 1 && other[0]?.id != identity.id)
    }

    @Test func changesWithoutOneHaveNone() throws {
        #expect(try identities(["{\(Self.note)}", #"{\#(Self.note),"changeId":null}"#]) == [nil, nil])
    }

    @Test(arguments: [1, 2]) func earlierRulesDoNotKnowTheField(rules: Int) throws {
        let changes = [#"{\#(Self.note),"changeId":"c"}"#, #"{\#(Self.note),"changeId":17}"#]
        #expect(try identities(changes, rules: rules) == [nil, nil])
    }

    @Test func dependsNeitherOnTheBatchNorOnThePosition() throws {
        let change = #"{\#(Self.note),"changeId":"c1"}"#
        let alone = try identities([change])[0]
        #expect(try identities([#"{"table":"task","id":"7","values":{"a":"x"}}"#, change])[1] == alone)
        let upload = Upload([change]).with(\.rules, 3)
        for other in [
            upload.with(\.isAtomic, true), upload.with(\.batch, 99), upload.with(\.batch, nil), upload.with(\.time, 5),
            upload.with(\.schema, Fixture.oldest),
            Upload([#"{ "values" : {"price":1.5, "title":"\u0041"}, "changeId":"\u00631", "id":"1", "table":"note" }"#])
                .with(\.rules, 3),
        ] {
            #expect(try other.admitted().parts.first?.changes.first?.identity == alone)
        }
    }

    @Test(arguments: [
        #""table":"task","id":"1","values":{}"#,
        #""table":"note","id":"2","values":{"title":"A","price":"1.50"}"#,
        #""table":"note","id":"1","values":{"title":"A","price":"1.51"}"#,
        #""table":"note","id":"1","values":{"title":"A"}"#,
        #""table":"note","id":"1","values":{"title":"A","price":"1.50"},"deleted":true"#,
        #""table":"note","id":"1","values":{"title":"A","price":"1.50"},"base":1"#,
        #""table":"note","id":"1","values":{"title":"A","price":"1.50"},"ifBase":true"#,
        #""table":"note","id":"1","values":{"title":"A","price":"1.50"},"updatedAt":"2026-01-02T03:04:05Z""#,
        #""table":"note","id":"1","values":{"title":"A","price":"1.50"},"knowledgeId":"k9""#,
        #""table":"note","id":"1","values":{"title":"A","price":"1.50"},"syncId":"bob""#,
    ]) func otherContentIsAnother(fields: String) throws {
        let (one, other) = (try identity(Self.note), try identity(fields))
        #expect(one.id == other.id && one.content != other.content)
    }

    @Test func theHashOfABatchCoversIdsAndIsUnchangedWithoutThem() throws {
        func hash(_ change: String, rules: Int = 3) throws -> [UInt8]? {
            try Upload([change]).with(\.rules, rules).admitted().parts.first?.contentHash
        }
        let without = try hash("{\(Self.note)}")
        #expect(try hash("{\(Self.note)}", rules: 1) == without)
        #expect(try hash(#"{\#(Self.note),"changeId":"c1"}"#, rules: 2) == without)
        let hashes = try ["c1", "c2", "c"].map { try hash(#"{\#(Self.note),"changeId":"\#($0)"}"#) }
        #expect(Set(hashes + [without]).count == 4)
        #expect(try hash(#"{"changeId":"c1",\#(Self.note)}"#) == hashes[0])
    }

    @Test(arguments: [
        #""""#, "17", "true", "[]", "{}", #""a\u0000""#, "\"\(String(repeating: "x", count: 256))\"",
    ]) func aBadOneIsAnInvalidChange(value: String) throws {
        let admitted = try Upload([#"{\#(Self.note),"changeId":\#(value)}"#]).with(\.rules, 3).admitted()
        #expect(
            admitted.refusals == [
                Refusal(
                    index: 0, code: .invalidChange, message: "changeId is a string of 1 to 255 bytes without NUL")
            ])
        let twice = try Upload([#"{"changeId":"c","changeId":"c",\#(Self.note)}"#]).with(\.rules, 3).admitted()
        #expect(twice.refusals.map(\.message) == ["changeId stands there twice"])
    }

    @Test func theLongestAndAnyTextIsAnId() throws {
        for id in [String(repeating: "x", count: 255), "é", "e\u{301}", " ", "🙂"] {
            let found = try identities([#"{\#(Self.note),"changeId":"\#(id)"}"#])
            #expect(found[0]?.id.bytes == Self.hash(id))
        }
    }
}
