import SyncModel
import Testing

/// `ifUnchanged`, which rules version 4 knows.
@Suite struct UnchangedFieldTests {
    private func change(_ json: String, rules: Int) throws -> Change? {
        try Upload([json]).with(\.rules, rules).admitted().parts[0].changes.first
    }

    @Test func isReadFromVersion4On() throws {
        let json = #"{"table":"note","id":"1","base":3,"ifUnchanged":true}"#
        #expect(try change(json, rules: 4)?.ifUnchanged == true)
        for rules in 1...3 { #expect(try change(json, rules: rules)?.ifUnchanged == false) }
    }

    @Test func isTrueOrFalse() throws {
        for value in ["1", #""true""#, "[]"] {
            let json = #"{"table":"note","id":"1","ifUnchanged":\#(value)}"#
            let refusals = try Upload([json]).with(\.rules, 4).admitted().refusals
            #expect(refusals.map(\.message) == ["ifUnchanged is true or false"])
            #expect(try change(json, rules: 3) != nil)
        }
        #expect(try change(#"{"table":"note","id":"1","ifUnchanged":null}"#, rules: 4)?.ifUnchanged == false)
    }

    @Test func isContent() throws {
        func hash(_ members: String, rules: Int) throws -> [UInt8]? {
            try Upload([#"{"table":"note","id":"1"\#(members)}"#]).with(\.rules, rules).admitted().parts.first?
                .contentHash
        }
        let flags = ["", #","ifBase":true"#, #","ifUnchanged":true"#, #","ifBase":true,"ifUnchanged":true"#]
        #expect(Set(try flags.map { try hash($0, rules: 4) }).count == 4)
        #expect(try hash(flags[2], rules: 3) == hash("", rules: 3))
        #expect(try hash(#","ifUnchanged":false"#, rules: 4) == hash("", rules: 4))
    }
}

/// `ifBase: "live"`, which rules version 4 knows.
@Suite struct LiveConditionFieldTests {
    private func json(_ value: String) -> String { #"{"table":"note","id":"1","base":3,"ifBase":\#(value)}"# }

    @Test func isReadFromVersion4On() throws {
        for (value, ifBase, isForLiveRow) in [("true", true, false), ("false", false, false), (#""live""#, true, true)]
        {
            let change = try Upload([json(value)]).with(\.rules, 4).admitted().parts[0].changes.first
            #expect(change?.ifBase == ifBase)
            #expect(change?.isForLiveRow == isForLiveRow)
        }
    }

    @Test(arguments: [1, 2, 3, 4]) func nothingElseIsAccepted(rules: Int) throws {
        for value in [#""Live""#, #""""#, "1"] + (rules < 4 ? [#""live""#] : []) {
            let refusals = try Upload([json(value)]).with(\.rules, rules).admitted().refusals
            #expect(refusals.map(\.message) == ["ifBase is true or false"])
        }
    }

    @Test func isContent() throws {
        let hashes = try ["true", #""live""#].map {
            try Upload([json($0)]).with(\.rules, 4).admitted().parts.first?.contentHash
        }
        #expect(hashes[0] != hashes[1])
    }
}
