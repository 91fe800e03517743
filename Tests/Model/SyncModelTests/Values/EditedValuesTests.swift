import Seeded
import SyncModel
import Testing

@Suite struct EditedValuesTests {
    private static let table = Table(
        name: "t",
        columns: [
            Column(name: "a", type: .integer),
            Column(name: "b", type: .integer, isNullable: false, defaultValue: Array("5".utf8)),
            Column(name: "c", type: .text),
        ])

    private func edited(_ row: [String?], _ changes: [[String?]]) -> EditedValues {
        var values = EditedValues(RowValues(json: row), in: Self.table)
        for (index, change) in changes.enumerated() {
            values = values.merged(with: RowValues(json: change), at: index, in: Self.table)
        }
        return values
    }

    private func changes(_ values: [RowValues]) -> [Change] {
        values.enumerated().map { index, values in
            Change(
                index: index, table: 0, id: RowID(unchecked: "r"), knowledgeID: KnowledgeID(unchecked: "k"),
                values: values)
        }
    }

    /// Row, changes, the size of all values, and of those that are not their column's default.
    private static let sizes: [([String?], [[String?]], Int, Int)] = [
        (["1", "2", "3"], [], 3, 3),
        (["1", "5", "null"], [], 6, 1),
        (["1", "2", "3"], [["null"]], 6, 2),
        (["1", "2", "3"], [[nil, "5"], [nil, "55"], [nil, "5"]], 3, 2),
        (["1", "2", "3"], [["1234", "12", "null"], [nil, nil, "7"]], 7, 7),
        // A later column than the table has is never its default.
        (["1", "2", "3", "null"], [], 7, 7),
    ]

    @Test(arguments: sizes)
    func countsValuesAndThoseBesideDefaults(row: [String?], changes: [[String?]], all: Int, besideDefaults: Int) {
        let values = edited(row, changes)
        #expect(values.jsonSize == all)
        #expect(values.sizeBesideDefaults == besideDefaults)
    }

    @Test func valuesThatNoChangeWroteAreThoseBefore() {
        let before = RowValues(json: ["1", "2", "3"])
        let values = edited(["1", "2", "3"], [[], [nil, nil]])
        #expect(!values.isMerged)
        #expect(values.values(of: changes([RowValues(), RowValues()])) == before)
    }

    /// Each merge against ``RowValues/merged(with:)``, which copies the row.
    @Test(arguments: UInt64(1)...40)
    func everyMergeGivesTheValuesThatACopyOfTheRowWouldHave(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let texts = ["1", "5", "null", "\"x\"", String(repeating: "7", count: 127), String(repeating: "8", count: 128)]
        func value(_ chance: Int) -> String? { random.chance(chance) ? random.pick(texts) : nil }
        // Rows of other schema versions have fewer columns or more; no value of a row is absent.
        var copied = RowValues(json: (0..<Int.random(in: 0...5, using: &random)).map { _ in value(100) })
        var edited = EditedValues(copied, in: Self.table)
        var merged: [RowValues] = []
        for index in 0..<60 {
            let presence = random.pick([0, 20, 60, 100])
            let change = RowValues(json: (0..<Int.random(in: 0...6, using: &random)).map { _ in value(presence) })
            merged.append(change)
            copied = copied.merged(with: change)
            edited = edited.merged(with: change, at: index, in: Self.table)
            #expect(edited.jsonSize == copied.jsonSize)
            let besideDefaults = copied.json.enumerated().filter { column, json in
                column > 2 || json != (column == 1 ? "5" : "null")
            }
            #expect(edited.sizeBesideDefaults == besideDefaults.reduce(0) { $0 + $1.element.utf8.count })
            let all = changes(merged)
            #expect(edited.values(of: all) == copied)
            #expect(edited.values(of: all).bytes == copied.bytes)
        }
    }
}
