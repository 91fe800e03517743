import RecordStore
import SyncModel
import Testing

@testable import Ordering

/// The state between deciding and writing, without a log or tables.
@Suite struct PartitionOrderingTests {
    private var ordering = PartitionOrdering(
        partition: 0, history: Fixture.history, stored: nil, maximumRowBytes: 1 << 20)
    private var maker = PartMaker()
    private var nextOffset: Int64 = 0

    /// Decides parts as one step, with nothing from the tables, and adds it.
    private mutating func addStep(_ parts: [ChangePart]) -> PartitionOrdering.Effects {
        var rest = parts.map { part in
            defer { nextOffset += 1 }
            return PartAtOffset(offset: nextOffset, part: part)
        }[...]
        var lookups = ordering.beginReadAhead(rest)
        for request in lookups.progress { lookups.known.progress[request] = DeviceProgress() }
        let (step, pause) = ordering.decide(&rest, lookups.known, schemas: Fixture.schemas)
        #expect(pause == nil && rest.isEmpty)
        guard let step else { return PartitionOrdering.Effects() }
        return ordering.add(step)
    }

    /// Takes the steps that wait, which the writing task would write now.
    private mutating func takeSteps() -> [PendingStep] {
        guard case .write(let steps) = ordering.takeSteps() else { return [] }
        return steps
    }

    private var isWaiting: Bool {
        mutating get { if case .wait = ordering.takeSteps() { true } else { false } }
    }

    @Test mutating func stepWakesTheWriterAndTakesItsShareOfTheBudget() {
        #expect(isWaiting)
        #expect(!ordering.mustWait(isBudgetFull: true))
        let effects = addStep(maker.creations(2))
        #expect(effects.wakesWriter && !effects.wakesReader)
        #expect(effects.unwrittenBytes > 1024 && effects.unwrittenBytes == ordering.unwrittenBytes)
        #expect(ordering.mustWait(isBudgetFull: true) && ordering.mustWaitUntilWritten)
        #expect(!ordering.mustWait(isBudgetFull: false))
    }

    /// Otherwise a partition with small steps would wait for the tables to have the large ones of another.
    @Test func aPartitionHasAShareOfTheBudgetThatOthersCannotTake() {
        let budget = OverlayBudget(limit: 1000, partitions: 4)
        budget.add(5000)
        #expect(budget.isFull(for: 5000))
        #expect(budget.isFull(for: 250))
        #expect(!budget.isFull(for: 249))
        budget.add(-4000)
        #expect(!budget.isFull(for: 1000))
    }

    @Test mutating func stepsThatWaitAreWrittenInOneTransaction() {
        let parts = [maker.part([.edit("r", ["1"])], batch: 1), maker.part([.edit("r", ["2"])], batch: 2)]
        _ = addStep([parts[0]])
        _ = addStep([parts[1]])
        let steps = takeSteps()
        #expect(steps.count == 2 && isWaiting)
        let transaction = ordering.beginWrite(steps, orderedOffset: 7)
        #expect(transaction.expected == nil && transaction.rows.count == 1 && transaction.outcomes.count == 2)
        #expect(transaction.rows.first?.version == 2)
        #expect(transaction.position == StoredPosition(state: ordering.state, orderedOffset: 7))
        let size = ordering.unwrittenBytes
        let effects = ordering.endWrite(steps, at: transaction.position)
        #expect(effects == PartitionOrdering.Effects(unwrittenBytes: -size, wakesReader: true))
        #expect(ordering.stored == transaction.position && !ordering.mustWaitUntilWritten)
    }

    @Test mutating func overlayReplacesTheTablesUntilTheStepIsWritten() {
        let first = maker.part([.edit("r", ["1"])], batch: 1)
        let second = [PartAtOffset(offset: 1, part: maker.part([.edit("r", ["2"])], batch: 2))]
        _ = addStep([first])
        #expect(ordering.beginReadAhead(second[...]).isEmpty)
        let steps = takeSteps()
        let transaction = ordering.beginWrite(steps, orderedOffset: 1)
        #expect(ordering.beginReadAhead(second[...]).isEmpty)
        _ = ordering.endWrite(steps, at: transaction.position)
        let lookups = ordering.beginReadAhead(second[...])
        #expect(lookups.rows.count == 1 && lookups.progress.count == 1)
    }

    @Test mutating func positionsThatThisWorkerMayHaveWrittenAreItsOwn() {
        ordering.beginReading()
        #expect(ordering.isOwn(nil))
        _ = addStep(maker.creations(1))
        let steps = takeSteps()
        ordering.beginReading()
        let position = ordering.beginWrite(steps, orderedOffset: 1).position
        // The transaction may or may not be committed by now.
        #expect(ordering.isOwn(nil) && ordering.isOwn(position))
        #expect(!ordering.isOwn(StoredPosition(state: ordering.state, orderedOffset: 9)))
        _ = ordering.endWrite(steps, at: position)
        ordering.beginReading()
        #expect(ordering.isOwn(position) && !ordering.isOwn(nil))
    }

    @Test mutating func writingEndsWhenOrderingHasEndedAndNoStepIsLeft() {
        _ = addStep(maker.creations(1))
        #expect(ordering.endOrdering() == PartitionOrdering.Effects(wakesReader: true, wakesWriter: true))
        #expect(!ordering.mustWait(isBudgetFull: true) && !ordering.mustWaitUntilWritten)
        #expect(takeSteps().count == 1)
        guard case .end = ordering.takeSteps() else {
            Issue.record("the writing task must end")
            return
        }
        let size = ordering.unwrittenBytes
        #expect(ordering.releaseUnwritten().unwrittenBytes == -size)
        #expect(ordering.unwrittenBytes == 0)
    }

    @Test mutating func partBelowItsDevicesHighestUnwrittenBatchStartsANewStep() {
        let parts = ([2, 1] as [Int64]).map { maker.part([.edit("r\($0)", ["1"])], batch: $0) }
        let sources = zip(Int64(0)..., parts).map { PartAtOffset(offset: $0, part: $1) }
        #expect(ordering.prefix(of: sources[...]).count == 1)
        _ = addStep([parts[0]])
        var rest = sources[1...]
        let lookups = ordering.beginReadAhead(rest)
        let (step, pause) = ordering.decide(&rest, lookups.known, schemas: Fixture.schemas)
        // Only the tables show whether batch 1 was decided before; neither step nor pause means to wait for them.
        #expect(step == nil && pause == nil && rest.count == 1)
    }
}
