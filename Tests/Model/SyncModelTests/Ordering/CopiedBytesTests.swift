import SyncModel
import Testing

/// What a part costs: a change costs what it writes, not what its row has.
@Suite struct CopiedBytesTests {
    private static let rowBytes = 100_000
    private static let count = 1000

    /// A partition with one large row, of a table whose policy is lastSyncWins.
    private func partition() throws -> Partition {
        var partition = Partition()
        try partition.send(.edit(.note, ["0", String(repeating: "1", count: Self.rowBytes)]))
        return partition
    }

    /// Many changes of the row in one part, and what they copied.
    private func order(
        _ change: Change, _ other: Change? = nil, schema: String = "v1", isAtomic: Bool = false,
        adjust: (inout ChangePart) -> Void = { _ in }
    ) throws -> (step: OrderingMachine.Step, copiedBytes: Int) {
        var partition = try partition()
        let changes = (0..<Self.count).map { $0.isMultiple(of: 2) ? change : other ?? change }
        var part = partition.part(changes, schema: schema, isAtomic: isAtomic)
        adjust(&part)
        return (try partition.order(part), partition.copiedBytes)
    }

    private func names(_ step: OrderingMachine.Step) -> Set<String> { Set(step.statuses.map(\.name)) }

    /// With room for the bytes before each value.
    private static let twice = 2 * rowBytes + 100

    @Test func editsOfOneRowCopyItsValuesOnce() throws {
        let (step, copiedBytes) = try order(.edit(.note, ["5"]), .edit(.note, ["77"]))
        #expect(names(step) == ["applied"])
        #expect(step.rows.map(\.version) == [Int64(Self.count + 1)])
        #expect(step.rows.first?.values.json.first == "77")
        #expect(copiedBytes == step.rows.first?.values.bytes.count)
    }

    /// Beside the new version, the row gets the columns of the later schema version once.
    @Test func editsOfARowOfAnEarlierSchemaVersionCopyItTwice() throws {
        let (step, copiedBytes) = try order(.edit(.note, ["5"]), schema: "v2")
        #expect(names(step) == ["applied"])
        #expect(step.rows.first?.values.count == 4)
        #expect((Self.rowBytes...Self.twice).contains(copiedBytes))
    }

    @Test func changesThatAreRefusedCopyNothing() throws {
        let grows = Change.edit(.note, ["123456"])
        let tooLarge = try order(grows) { $0.maxRowBytes = Self.rowBytes }
        #expect(names(tooLarge.step) == ["row_too_large"])
        #expect(tooLarge.copiedBytes == 0)
        let aboveQuota = try order(grows) { $0.maxOwnerBytes = Self.rowBytes }
        #expect(names(aboveQuota.step) == ["quota_exceeded"])
        #expect(aboveQuota.copiedBytes == 0)
        let aborted = try order(.edit(.note, ["5"]), isAtomic: true) { $0.hasIngestRefusal = true }
        #expect(names(aborted.step) == ["batch_aborted"])
        #expect(aborted.copiedBytes == 0)
    }

    @Test func deletesAndRevivalsCopyTheLastVersionAlone() throws {
        let large = Change.edit(
            .note, ["1", String(repeating: "2", count: Self.rowBytes)], ifBase: true, isForLiveRow: true)
        let (step, copiedBytes) = try order(.delete(.note), large)
        #expect(names(step) == ["applied"])
        #expect(step.rows.map(\.isDeleted) == [false])
        #expect((Self.rowBytes...Self.twice).contains(copiedBytes))
        // A tombstone keeps its values, which are there already.
        #expect(try order(.delete(.note)).copiedBytes == 0)
    }

    @Test func aPartOfManyRowsCopiesEachOnce() throws {
        var partition = Partition()
        let ids = (0..<50).map { "\($0)" }
        let value = String(repeating: "1", count: 1000)
        try partition.order(partition.part(ids.map { .edit(.note, ["0", value], id: $0) }))
        let edits = (0..<20).flatMap { round in ids.map { Change.edit(.note, ["\(round)"], id: $0) } }
        let step = try partition.order(partition.part(edits))
        #expect(step.rows.count == ids.count)
        #expect(partition.copiedBytes == step.rows.reduce(0) { $0 + $1.values.bytes.count })
    }
}
