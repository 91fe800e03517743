extension Catalog {
    private static let worker = "Pipeline/Ordering/PartitionWorker.swift"
    private static let partition = "Pipeline/Ordering/PartitionOrdering.swift"
    private static let deciding = "Pipeline/Ordering/PartitionOrdering+Deciding.swift"
    private static let overlay = "Pipeline/Ordering/Overlay.swift"
    private static let results = "Pipeline/Ordering/ResultPosition.swift"

    static let ordering: [Mutant] = [
        .expression("a replaced worker publishes", in: worker, "ordering.isOwn(found.position)", "true"),
        .statement(
            "the tables are written before ordered has the results", in: worker, "try await takeOffsets(of: receipt)"),
        .expression(
            "the tables name an offset of ordered after a result that they lack", in: results, "expected",
            "expected + 1",
            within: "position = expected"),
        .expression(
            "the tables' position passes results of another worker", in: results, "nextOffset < heldUntil", "false"),
        .statement("the reading task is not woken", in: worker, "if effects.wakesReader { stepsWritten.signal() }"),
        .statement("the writing task is not woken", in: worker, "if effects.wakesWriter { stepAdded.signal() }"),
        .expression(
            "ordering begins one record after the tables' position", in: "Pipeline/Ordering/OrderingStart.swift",
            "state.nextOffset", "state.nextOffset + 1", within: "reader(of: changes, from: state.nextOffset)"),
        .statement(
            "the position that was written is forgotten", in: partition, "stored = position",
            unfound: "its worker is fenced at its next read and restarts: that costs time and changes no result"),
        .expression(
            "a row of a newer step leaves the overlay", in: overlay, "rows[place].value.step == step.number", "true",
            unfound:
                "needs three batches that write one row while the tables stall, and a read between two transactions"),
        .expression(
            "a device's progress of a newer step leaves the overlay", in: overlay, "entry.step <= step.number", "true",
            unfound: "needs a repeat of a batch between two transactions of its device"),
        .expression(
            "the overlay decides on an outcome that only the tables have", in: overlay,
            "outcome != nil || batch > entry.highestBatch", "true", steps: 60),
        .expression(
            "rows come from the tables although the overlay is newer", in: deciding,
            "overlay.row(key) ?? known.row(key)",
            "known.rows[key] ?? overlay.row(key)"),
        .statement(
            "rows beyond those of one lookup do not exist", in: worker, "known.unread.formUnion(found.unread)"),
        .expression(
            "applied changes come from the tables although the overlay is newer", in: deciding,
            "overlay.appliedChange(key) ?? known.applied[key]", "known.applied[key]"),
        .statement(
            "an applied change that leaves the overlay while the tables are read is lost", in: deciding,
            "lookups.known.applied[key] = change", seeds: 2000),
        .expression(
            "the usage comes from the tables although the overlay is newer", in: deciding,
            "overlay.usage(of: part.owner) ?? known.usage[part.owner] ?? OwnerUsage()",
            "known.usage[part.owner] ?? OwnerUsage()"),
        .statement(
            "usage that leaves the overlay while the tables are read is lost", in: deciding,
            "lookups.known.usage[part.owner] = usage", seeds: 2000),
        .expression(
            "the usage of a newer step leaves the overlay", in: overlay, "usage[owner]?.step == step.number", "true",
            seeds: 2000),
        .statement(
            "the tables lose usage", in: "Adapters/MemoryRecordStore/MemoryTables.swift",
            "for (owner, usage) in step.usage { partition.usage[owner] = usage }"),
        .statement(
            "applied changes are not looked up", in: deciding, "lookups.applied.insert(key)"),
        .statement(
            "the tables lose applied changes", in: "Adapters/MemoryRecordStore/MemoryTables.swift",
            "for stored in step.applied { partition.applied[stored.changeKey] = stored.change }"),
        .expression(
            "the rows of a part have no limit", in: "Model/SyncModel/Ordering/TouchedRows.swift",
            "rules >= 2 ? maxBatchRowBytes : .max", ".max"),
        .statement(
            "a result does not have the size of the rows that its part touched", in: deciding,
            "result.touchedBytes = step.touchedBytes"),
        .statement(
            "a row that leaves the overlay while the tables are read is lost", in: deciding,
            "lookups.known.rows[key] = row"),
        .expression(
            "a lower batch does not wait for unwritten steps", in: deciding, "batch < before", "false",
            unfound: "progress(of:) decides the same once more, from the overlay"),
        .expression(
            "a result names part 0", in: deciding, "part.part", "0", within: "uploadPart: part.part"),
        .expression(
            "the fence of the tables is open", in: "Adapters/MemoryRecordStore/MemoryTables.swift",
            "partitions[step.partition]?.position == step.expected", "true",
            unfound: "ordering's own fence, which compares the position after each read, stops a replaced worker first"),
        .expression(
            "the tables keep too few outcomes", in: "Adapters/MemoryRecordStore/MemoryTables.swift",
            "Outcome.keptPerDevice", "2", within: "outcomes.suffix(Outcome.keptPerDevice)"),
    ]
}
