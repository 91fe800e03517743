import Digest
import Ingest
import SyncModel
import Testing

/// A repeat is told from other content under the same number by what the batch says (I2).
@Suite struct ContentHashTests {
    private func hash(_ upload: Upload) throws -> [UInt8] {
        try #require(try upload.admitted().parts.first).contentHash
    }

    private let batch = Upload([
        #"{"table":"note","id":"1","values":{"title":"A","count":5,"price":"1.50","due":"2026-01-02T03:04:05.000000Z"}}"#,
        #"{"table":"note","id":"2","syncId":"bob","deleted":true,"base":7}"#,
    ])

    @Test func saysTheSameForOtherSpellings() throws {
        let first = try hash(batch)
        let respelled = Upload(
            """
             [ {"knowledgeId":"k1", "syncId":"ann", "values": {"due":"2026-01-02T04:04:05+01:00", "price":1.5,
               "count":"5", "title":"\\u0041"}, "id":"1", "table":"note", "deleted":false, "unknown":[]},
              {"base":7.0, "deleted":true, "syncId":"bob", "id":"2", "table":"note", "ifBase":null, "values":{}} ]
            """)
        #expect(try respelled.admitted().refusals.isEmpty)
        #expect(try hash(respelled) == first)
    }

    @Test func saysTheSameUnderOtherGrants() throws {
        let first = try hash(batch)
        #expect(try hash(batch.with(\.grants, [("ann", .write)])) == first)
        #expect(try hash(batch.with(\.grants, [])) == first)
    }

    @Test func saysTheSameUnderANewerSchemaVersion() throws {
        #expect(try hash(batch.with(\.schema, Fixture.oldest)) == hash(batch))
        let task = Upload([#"{"table":"task","id":"1","values":{"b":"B"},"updatedAt":"2026-01-02T03:04:05Z"}"#])
        #expect(try hash(task.with(\.schema, Fixture.oldest)) == hash(task))
    }

    @Test func saysTheSameFromAnotherPlaceInTheLog() throws {
        #expect(try hash(batch.with(\.offset, 99).with(\.time, 5)) == hash(batch))
        #expect(try hash(batch.with(\.batch, 8)) == hash(batch))
    }

    @Test func saysTheSameForRefusedChangesButForWhiteSpaceAndEscapes() throws {
        let refused = Upload(#"[{"table":"x","id":"1","values":{"a":[1,"A"]}},17]"#)
        #expect(
            try hash(Upload(" [ {\"table\": \"x\", \"id\":\"1\", \"values\":{\"a\":[ 1, \"\\u0041\" ]}} , 17 ]"))
                == hash(refused))
        let repeated = Upload(#"[{"table":"x","id":"1","a":{"b":1,"b":2}}]"#)
        #expect(try hash(repeated) == hash(repeated.with(\.grants, [])))
        #expect(try hash(Upload(#"[{"table":"x","id":"1","a":{"b":1,"b":3}}]"#)) != hash(repeated))
    }

    @Test func saysTheSameForRefusedChangesWhoseMembersStandInAnotherOrder() throws {
        let refused = Upload(#"[{"id":"1","table":"x","values":{"b":{"d":1,"c":[2,{"f":3,"e":4}]},"a":5}}]"#)
        let other = Upload(#"[{"values":{"a":5,"b":{"c":[2,{"e":4,"f":3}],"d":1}},"table":"x","id":"1"}]"#)
        #expect(try hash(other) == hash(refused))
        let swapped = Upload(#"[{"values":{"a":5,"b":{"c":[{"e":4,"f":3},2],"d":1}},"table":"x","id":"1"}]"#)
        #expect(try hash(swapped) != hash(refused))
    }

    @Test func readsRefusedChangesOfAnyDepth() throws {
        // As deep as the parser takes, each level with members in the wrong order.
        let deep = String(repeating: #"{"b":"#, count: 1000) + "1" + String(repeating: #","a":2}"#, count: 1000)
        let shallow = String(repeating: #"{"b":"#, count: 60) + "1" + String(repeating: #","a":2}"#, count: 60)
        #expect(try hash(Upload("[\(deep)]")) != hash(Upload("[\(shallow)]")))
        #expect(try Upload("[\(deep)]").admitted().refusals.map(\.code) == [.invalidChange])
        let sorted = String(repeating: #"{"a":2,"b":"#, count: 60) + "1" + String(repeating: "}", count: 60)
        #expect(try hash(Upload("[\(shallow)]")) == hash(Upload("[\(sorted)]")))
    }

    /// What devices sent is compared with hashes that are kept for ever: another spelling needs another rules version.
    @Test func keepsItsSpellingForEver() throws {
        var expected: [UInt8] = [0]
        func add(_ text: String) { expected += [UInt8(text.utf8.count)] + text.utf8 }
        expected.append(1)
        for text in ["ann", "note", "1", "k1"] { add(text) }
        // Flags, base, updatedAt.
        expected += [0, 0, 0]
        for text in ["count", "5", "due", "\"2026-01-02T03:04:05.000000Z\"", "price", "\"1.50\"", "title", "\"A\""] {
            add(text)
        }
        expected += [0, 1]
        for text in ["bob", "note", "2", "k1"] { add(text) }
        expected += [1 | 2 | 4, 0xC8, 0x01, 2, 0, 2]
        add(#"{"a":[1,"A"],"id":"3"}"#)
        let batch = Upload([
            #"{"table":"note","id":"1","values":{"title":"A","count":5,"price":"1.50","due":"2026-01-02T03:04:05Z"}}"#,
            #"{"table":"note","id":"2","syncId":"bob","deleted":true,"ifBase":true,"base":200,"updatedAt":"1970-01-01T00:00:00.000002Z"}"#,
            #"{ "id":"3", "a":[1, "\u0041"] }"#,
        ])
        #expect(try hash(batch) == SHA256.digest(of: expected))
    }

    /// Batches that say something else each.
    static let different: [String] = [
        "[]", "[{}]", "[[]]", "[{},{}]", "[null]", "[0]", "[0.0]",
        #"[{"table":"note","id":"1"}]"#,
        #"[{"table":"task","id":"1"}]"#,
        #"[{"table":"note","id":"2"}]"#,
        #"[{"table":"note","id":"1"},{"table":"note","id":"2"}]"#,
        #"[{"table":"note","id":"2"},{"table":"note","id":"1"}]"#,
        #"[{"table":"note","id":"1"},{"table":"note","id":"1"}]"#,
        #"[{"table":"note","id":"1","syncId":"bob"}]"#,
        #"[{"table":"note","id":"1","syncId":"zoe"}]"#,
        #"[{"table":"note","id":"1","knowledgeId":"k2"}]"#,
        #"[{"table":"note","id":"1","deleted":true}]"#,
        #"[{"table":"note","id":"1","ifBase":true}]"#,
        #"[{"table":"note","id":"1","base":1}]"#,
        #"[{"table":"note","id":"1","base":256}]"#,
        #"[{"table":"note","id":"1","updatedAt":"1970-01-01T00:00:00Z"}]"#,
        #"[{"table":"note","id":"1","updatedAt":"1970-01-01T00:00:00.000001Z"}]"#,
        #"[{"table":"note","id":"1","values":{"title":"A"}}]"#,
        #"[{"table":"note","id":"1","values":{"body":"A"}}]"#,
        #"[{"table":"note","id":"1","values":{"body":"a"}}]"#,
        #"[{"table":"note","id":"1","values":{"body":null}}]"#,
        #"[{"table":"note","id":"1","values":{"body":"null"}}]"#,
        #"[{"table":"note","id":"1","values":{"body":"é"}}]"#,
        #"[{"table":"note","id":"1","values":{"body":"e\u0301"}}]"#,
        #"[{"table":"note","id":"1","values":{"title":"A","body":"A"}}]"#,
        #"[{"table":"note","id":"1","values":{"labels":[1,2]}}]"#,
        #"[{"table":"note","id":"1","values":{"labels":{"a":1,"b":2}}}]"#,
        #"[{"table":"note","id":"1","values":{"labels":{"b":2,"a":1}}}]"#,
        #"[{"table":"note","id":"1","values":{"count":1}}]"#,
        #"[{"table":"note","id":"1","values":{"weight":1}}]"#,
        #"[{"table":"note","id":"1","values":{"count":1.5}}]"#,
        #"[{"table":"note","id":"1","values":{"unknown":1}}]"#,
    ]

    @Test func saysSomethingElseForEverythingElse() throws {
        var seen: [[UInt8]: String] = [:]
        for changes in Self.different {
            for isAtomic in [false, true] {
                let content = try hash(Upload(changes).with(\.isAtomic, isAtomic))
                let other = seen.updateValue(changes, forKey: content)
                #expect(other == nil, "\(changes) and \(other ?? "")")
            }
        }
    }
}
