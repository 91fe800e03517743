import SyncModel
import Testing

@testable import TrackerFace

@Suite struct ServerIDTests {
    private let table = Table(
        name: "note", columns: [Column(name: "title", type: .text), Column(name: "text", type: .text)])

    /// A later version of the table, whose first columns are the same.
    private func table(adding column: Column) -> Table { Table(name: table.name, columns: table.columns + [column]) }

    private func id(
        _ createdOn: Int64 = 1_777_622_400_000_001, _ updatedOn: Int64 = 1_777_622_400_000_002,
        values: [String?] = [#""A""#, nil], of table: Table? = nil
    ) -> RowID {
        ServerID.make(
            of: table ?? self.table, createdOn: createdOn, updatedOn: updatedOn,
            values: values.map { $0.map { Array($0.utf8) } })
    }

    /// It is stored by devices, so it may never change.
    @Test func isMadeOfTheContent() {
        #expect(id() == id())
        let others = [
            id(1_777_622_400_000_002), id(1_777_622_400_000_001, 3),
            id(1_777_622_400_000_001, 3, values: [#""B""#, nil]),
            id(1_777_622_400_000_001, 3, values: [nil, #""B""#]),
            id(of: Table(name: "other", columns: table.columns)),
        ]
        #expect(Set(others + [id()]).count == others.count + 1)
    }

    /// A create that is repeated after the schema has got another column.
    @Test func doesNotChangeWithAColumnThatTheDocumentLacks() {
        let withoutDefault = table(adding: Column(name: "color", type: .text))
        #expect(id(values: [#""A""#, "null", "null"], of: withoutDefault) == id())
        let red = table(adding: Column(name: "color", type: .text, defaultValue: Array(#""red""#.utf8)))
        #expect(id(values: [#""A""#, "null", nil], of: red) == id())
        // A null that was sent is not the default.
        #expect(id(values: [#""A""#, "null", "null"], of: red) != id())
    }

    @Test(arguments: [0, 1, 999, 1000, 1_777_622_400_123_456, 253_402_300_799_999_999] as [Int64])
    func holdsWhenTheDocumentWasCreated(createdOn: Int64) throws {
        let id = id(createdOn)
        #expect(ServerID.createdOn(id.text.utf8.span) == createdOn)
        let pattern = /[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/
        #expect(try pattern.wholeMatch(in: id.text) != nil, "\(id)")
    }

    @Test func anIDOfVersionSevenHoldsMilliseconds() throws {
        let id = try #require(RowID("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"))
        #expect(ServerID.createdOn(id.text.utf8.span) == 1_645_557_742_000_000)
    }

    @Test(arguments: [
        "note-1", "919108f7-52d1-4320-9bac-f847db4148a8", "017f22e2-79b0-7cc3-18c4-dc0c0c07398f",
        "017f22e279b07cc398c4dc0c0c07398f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398é",
        "ffffffff-ffff-8fff-bfff-ffffffffffff",
    ]) func anotherIDHoldsNoTime(text: String) throws {
        #expect(ServerID.createdOn(text.utf8.span) == nil)
    }
}
