import SyncModel
import Testing

@Suite struct KnowledgeVectorTests {
    let k1 = KnowledgeID(unchecked: "k1")
    let k2 = KnowledgeID(unchecked: "k2")

    @Test(arguments: [0, 5])
    func reportsDuplicatePairs(timeStamp: Int64) {
        var vector = KnowledgeVector()
        let value = TimeStamp(timeStamp)
        for owner in [SyncID.abc, .def] {
            for device in [k1, k2, .everyOther] {
                #expect(adds(value, for: device, of: owner, to: &vector))
            }
        }
        let before = vector
        for owner in [SyncID.abc, .def] {
            for device in [k1, k2, .everyOther] {
                #expect(!adds(TimeStamp(7), for: device, of: owner, to: &vector))
            }
        }
        #expect(vector == before)
    }

    @Test func anEntryCountsBeforeTheFloorAndTheFloorBeforeZero() {
        var vector = KnowledgeVector()
        #expect(vector[.abc][k1] == .zero)
        #expect(adds(TimeStamp(3), for: k1, of: .abc, to: &vector))
        #expect(vector[.abc][k1] == TimeStamp(3) && vector[.abc][k2] == .zero)
        #expect(adds(TimeStamp(8), for: .everyOther, of: .abc, to: &vector))
        #expect(vector[.abc][k1] == TimeStamp(3) && vector[.abc][k2] == TimeStamp(8))
        #expect(vector[.def][k2] == .zero)
    }

    @Test func theHighestIsTheGreatestOfEntriesAndFloor() {
        #expect(OwnerKnowledge().highest == .zero)
        #expect(OwnerKnowledge(entries: [k1: TimeStamp(3), k2: TimeStamp(9)]).highest == TimeStamp(9))
        #expect(OwnerKnowledge(floor: TimeStamp(10), entries: [k1: TimeStamp(3)]).highest == TimeStamp(10))
    }

    @Test func aFloorOfZeroDiffersFromNoFloor() {
        var vector = KnowledgeVector()
        #expect(adds(.zero, for: .everyOther, of: .abc, to: &vector))
        #expect(vector[.abc].givenFloor == .zero && vector[.def].givenFloor == nil)
        #expect(vector.owners.keys.elementsEqual([.abc]))
    }

    @Test func aVectorBuiltByEntriesEqualsOneBuiltAtOnce() {
        var vector = KnowledgeVector()
        #expect(adds(TimeStamp(2), for: .everyOther, of: .abc, to: &vector))
        #expect(adds(TimeStamp(3), for: k1, of: .abc, to: &vector))
        let whole = KnowledgeVector(owners: [.abc: OwnerKnowledge(floor: TimeStamp(2), entries: [k1: TimeStamp(3)])])
        #expect(vector == whole)
        var extended = whole
        #expect(!adds(TimeStamp(9), for: .everyOther, of: .abc, to: &extended))
    }

    @Test func devicesAreComparedByteByByte() {
        var vector = KnowledgeVector()
        #expect(adds(TimeStamp(1), for: KnowledgeID(unchecked: "\u{E9}"), of: .abc, to: &vector))
        #expect(adds(TimeStamp(2), for: KnowledgeID(unchecked: "e\u{301}"), of: .abc, to: &vector))
        #expect(vector[.abc].entries.count == 2)
    }

    @Test func requiresTheHeadOfTheLastCutPage() {
        #expect(OwnerKnowledge(entries: [k1: TimeStamp(3)]).requiredHead == TimeStamp(3))
        let cut = OwnerKnowledge(floor: TimeStamp(2), entries: [k1: TimeStamp(3)], cutFrom: TimeStamp(9))
        #expect(cut.requiredHead == TimeStamp(9))
        #expect(cut.highest == TimeStamp(3))
        #expect(OwnerKnowledge(floor: TimeStamp(12), cutFrom: TimeStamp(9)).requiredHead == TimeStamp(12))
    }

    @Test func keepsTheGreatestHeadOfCutPagesPerOwner() {
        var vector = KnowledgeVector()
        vector.insert(cutFrom: .zero, of: .abc)
        #expect(vector[.abc] == OwnerKnowledge(cutFrom: .zero))
        for head in [3, 7, 5] { vector.insert(cutFrom: TimeStamp(Int64(head)), of: .abc) }
        #expect(vector[.abc] == OwnerKnowledge(cutFrom: TimeStamp(7)))
    }

    private func adds(
        _ timeStamp: TimeStamp, for device: KnowledgeID, of owner: SyncID, to vector: inout KnowledgeVector
    ) -> Bool {
        vector.insert(timeStamp, for: device, of: owner)
    }
}
