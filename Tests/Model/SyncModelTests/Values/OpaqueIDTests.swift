import SyncModel
import Testing

@Suite struct OpaqueIDTests {
    @Test func comparesByteByByteAndNotByCanonicalEquivalence() {
        let composed = RowID(unchecked: "\u{E9}")
        let decomposed = RowID(unchecked: "e\u{301}")
        #expect(composed.text == decomposed.text)
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed]).count == 2)
    }

    @Test(arguments: ["", "a\u{0}b", String(repeating: "x", count: 256), String(repeating: "é", count: 128)])
    func refusesInvalidIds(text: String) {
        #expect(SyncID(text) == nil)
    }

    @Test func acceptsUpTo255Bytes() {
        #expect(KnowledgeID(String(repeating: "x", count: 255))?.text.utf8.count == 255)
    }

    @Test func refusesBytesThatAreNotUTF8() {
        #expect(RowID(utf8: [0x61, 0xFF]) == nil)
        #expect(RowID(utf8: [0xED, 0xA0, 0x80]) == nil)
        #expect(RowID(utf8: [0x61])?.text == "a")
    }

    @Test func ordersByBytes() {
        #expect(SyncID(unchecked: "Z") < SyncID(unchecked: "a"))
        #expect(SyncID(unchecked: "e\u{301}") < SyncID(unchecked: "\u{E9}"))
    }
}
