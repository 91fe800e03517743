import SyncModel
import Testing

/// The limit of the rows that a part touches.
@Suite struct TouchedRowsTests {
    private static let refusal = ChangeResult.Status.refused(
        .batchRowsTooLarge,
        message:
            "the rows of the changes before this one reach maxBatchRowBytes, 10: send this change again in another batch"
    )

    /// A partition with rows of these sizes, named by their position.
    private func partition(_ sizes: Int...) throws -> Partition {
        var partition = Partition()
        for (number, size) in sizes.enumerated() {
            // Two columns: one byte, and the rest.
            let value = String(repeating: "1", count: size - 1)
            try partition.send(.edit(.note, ["0", value], id: "\(number)"))
        }
        return partition
    }

    private func order(
        _ partition: inout Partition, _ changes: Change..., limit: Int = 10, batch: Int64? = nil, isAtomic: Bool = false
    ) throws -> OrderingMachine.Step {
        var part = partition.part(changes, batch: batch, isAtomic: isAtomic)
        part.maxBatchRowBytes = limit
        return try partition.order(part)
    }

    private func edit(_ id: Int) -> Change { .edit(.note, ["9"], id: "\(id)") }

    @Test func rowsAfterTheOneThatReachesTheLimitAreRefused() throws {
        var partition = try partition(4, 5, 4, 4)
        let before = partition
        // 4 and 5 bytes are below 10; the third row reaches it.
        let step = try order(&partition, edit(0), edit(1), edit(2), edit(3))
        #expect(step.statuses.map(\.name) == ["applied", "applied", "applied", "batch_rows_too_large"])
        #expect(step.statuses.last == Self.refusal)
        #expect(step.touchedBytes == 13)
        #expect(partition.row(.note, "3") == before.row(.note, "3"))
        // The client sends it again.
        #expect(try order(&partition, edit(3)).statuses.map(\.name) == ["applied"])
    }

    @Test(arguments: [(8, 2), (9, 2), (10, 1)])
    func theLimitIsReachedWithItsLastByte(limit: Int, refused: Int) throws {
        var partition = try partition(4, 5, 4, 4)
        let step = try order(&partition, edit(0), edit(1), edit(2), edit(3), limit: limit)
        #expect(
            step.statuses.suffix(2).map(\.name)
                == (refused == 2
                    ? ["batch_rows_too_large", "batch_rows_too_large"] : ["applied", "batch_rows_too_large"]))
    }

    @Test func aRowAboveTheLimitIsProcessedIfItIsTheFirst() throws {
        var partition = try partition(50, 50)
        #expect(try order(&partition, edit(0), edit(1)).statuses.map(\.name) == ["applied", "batch_rows_too_large"])
        #expect(try order(&partition, edit(1), edit(0)).statuses.map(\.name) == ["applied", "batch_rows_too_large"])
    }

    @Test func aRowCountsOnceAndAsItWasBeforeThePart() throws {
        var partition = try partition(4, 4, 4)
        let large = String(repeating: "1", count: 100)
        let step = try order(
            &partition, edit(0), .edit(.note, [large], id: "0"), edit(0), edit(1), edit(1), edit(2))
        #expect(step.statuses.map(\.name) == Array(repeating: "applied", count: 6))
    }

    @Test(arguments: [(7, 0), (8, 4)]) func resultsHaveTheSizeSinceRulesVersion8(rules: Int, size: Int) throws {
        var partition = try partition(4)
        var part = partition.part([edit(0)], batch: nil, isAtomic: false)
        part.rules = rules
        #expect(try partition.order(part).touchedBytes == size)
    }

    /// They have been read, whatever becomes of the changes.
    @Test func rowsOfRefusedChangesCountAsTouched() throws {
        var partition = try partition(4, 5, 4)
        let aborted = try order(&partition, edit(0), edit(1), edit(1), edit(2), limit: 8, isAtomic: true)
        #expect(aborted.statuses.contains { $0.name == "batch_aborted" })
        #expect(aborted.written.isEmpty && aborted.touchedBytes == 9)
        #expect(try order(&partition, .edit(.note, ["1"], id: "new")).touchedBytes > 0)
        #expect(try order(&partition).touchedBytes == 0)
    }

    @Test func changesToRowsTouchedBeforeTheLimitGoOn() throws {
        var partition = try partition(10, 4)
        let step = try order(&partition, edit(0), edit(1), edit(0), .delete(.note, id: "0"), edit(1))
        #expect(
            step.statuses.map(\.name) == [
                "applied", "batch_rows_too_large", "applied", "applied", "batch_rows_too_large",
            ])
        #expect(partition.row(.note, "0")?.version == 4)
    }

    /// A row counts although its change stored nothing, once.
    @Test func rowsOfConflictsAndRefusalsCount() throws {
        var partition = try partition(5, 5, 5)
        let conflict = Change.edit(.note, ["9"], id: "0", base: 99, ifBase: true)
        let step = try order(&partition, conflict, conflict, conflict, edit(1), edit(2), edit(0))
        #expect(
            step.statuses.map(\.name) == [
                "conflict", "conflict", "conflict", "applied", "batch_rows_too_large", "applied",
            ])
        // Those that were processed show the row.
        #expect(step.results.map { $0.locator != nil } == [true, true, true, false, false, false])
    }

    @Test func aRowThatDoesNotExistCountsWithItsDefaults() throws {
        var partition = Partition()
        // null, 1 and null are 9 bytes.
        func member(_ id: String) -> Change { .edit(.member, ["5"], id: id) }
        let step = try order(&partition, member("a"), member("b"), member("c"), member("a"))
        #expect(step.statuses.map(\.name) == ["applied", "applied", "batch_rows_too_large", "applied"])
        #expect(partition.row(.member, "c") == nil)
        // Of another table: null and null.
        let notes = try order(
            &partition, .edit(.note, ["1"], id: "a"), .delete(.note, id: "b"), .edit(.note, ["1"], id: "c"))
        #expect(notes.statuses.map(\.name) == ["applied", "applied", "batch_rows_too_large"])
    }

    @Test func aRowCountsWithTheDefaultsOfLaterColumns() throws {
        var partition = try partition(2, 2, 2)
        // "red" and null are 9 bytes more.
        var part = partition.part([edit(0), edit(1)], schema: "v2")
        part.maxBatchRowBytes = 11
        #expect(try partition.order(part).statuses.map(\.name) == ["applied", "batch_rows_too_large"])
        part = partition.part([edit(1), edit(2)])
        part.maxBatchRowBytes = 12
        #expect(try partition.order(part).statuses.map(\.name) == ["applied", "applied"])
    }

    @Test func aRefusedChangeHasNoRowAndItsRowIsNotLookedUp() throws {
        var partition = try partition(10, 4)
        var part = partition.part([edit(0), edit(1), .edit(.note, ["1"], id: "none", base: 7)])
        part.maxBatchRowBytes = 10
        var looked: [String] = []
        let rows = partition.rows
        let step = try partition.machine.step(
            part, state: partition.state, schemas: partition.schemas, progress: DeviceProgress(),
            usage: OwnerUsage(), applied: { _ in nil },
            row: { key in
                looked.append(key.id.text)
                return rows[key]
            })
        #expect(looked == ["0"])
        #expect(step.statuses.map(\.name) == ["applied", "batch_rows_too_large", "batch_rows_too_large"])
        #expect(step.results.allSatisfy { $0.locator == nil })
    }

    @Test func anAtomicPartAboveTheLimitWritesNothing() throws {
        var partition = try partition(10, 4)
        let before = partition
        let step = try order(&partition, edit(0), edit(1), batch: 1, isAtomic: true)
        #expect(step.statuses.map(\.name) == ["batch_aborted", "batch_rows_too_large"])
        #expect(step.results.map { $0.locator != nil } == [true, false])
        #expect(step.rows.isEmpty && partition.rows == before.rows)
        #expect(partition.state.timeStamp == before.state.timeStamp)
    }

    @Test func eachPartHasTheLimitOfItsBatch() throws {
        var partition = try partition(10, 10)
        #expect(try order(&partition, edit(0), edit(1), limit: 11).statuses.map(\.name) == ["applied", "applied"])
        let other = try order(&partition, edit(0), edit(1), limit: 10)
        #expect(other.statuses.map(\.name) == ["applied", "batch_rows_too_large"])
    }

    /// Batches of the first rules version were ordered without the limit, and are on a replay (I4).
    @Test func rulesVersion1HasNoLimit() throws {
        var partition = try partition(10, 10)
        var part = partition.part([edit(0), edit(1)])
        part.maxBatchRowBytes = 1
        part.rules = 1
        #expect(try partition.order(part).statuses.map(\.name) == ["applied", "applied"])
    }
}
