extension Catalog {
    private static let clock = "Model/SyncModel/Identity/TimeStamp.swift"
    private static let machine = "Model/SyncModel/Ordering/OrderingMachine.swift"
    private static let row = "Model/SyncModel/Ordering/OrderedRow.swift"
    private static let change = "Model/SyncModel/Ordering/ChangeRules.swift"
    private static let applied = "Model/SyncModel/Ordering/AppliedChanges.swift"
    private static let vector = "Model/SyncModel/Identity/KnowledgeVector.swift"

    private static let usage = "Model/SyncModel/Ordering/OwnerUsage.swift"
    private static let touched = "Model/SyncModel/Ordering/TouchedRows.swift"

    static let rules: [Mutant] = [
        .expression(
            "a timeStamp is not raised", in: clock, "max(previous.rawValue + 1, logTime)",
            "max(previous.rawValue, logTime)"),
        .expression("a timeStamp falls with the clock", in: clock, "max(previous.rawValue + 1, logTime)", "logTime"),
        .expression(
            "the sequence clock skips a number", in: clock, "max(previous.rawValue + 1, first)",
            "max(previous.rawValue + 2, first)"),
        .expression(
            "a part that was delivered twice is ordered twice", in: "Model/SyncModel/Ordering/PartitionState.swift",
            "UploadProgress(offset: part.upload.offset, part: part.part) <= seen",
            "UploadProgress(offset: part.upload.offset, part: part.part) < seen"),
        .expression(
            "the newest batch of a device is applied again", in: machine, "batch <= progress.highestBatch",
            "batch < progress.highestBatch"),
        .expression(
            "a batch number that is used again is taken for a repeat", in: machine,
            "first.contentHash == part.contentHash", "true"),
        .expression(
            "a lower batch without an outcome is applied", in: machine, "batch <= progress.highestBatch",
            "batch <= progress.highestBatch && progress.outcome != nil"),
        .expression(
            "one outcome too few is kept", in: "Model/SyncModel/Ordering/Outcome.swift", "16", "15",
            within: "keptPerDevice = 16", steps: 400),
        .expression("a base above the row's timeStamp is current", in: row, "base <= timeStamp", "true"),
        .expression(
            "the row's own timeStamp is not current", in: row,
            "(writer == device ? othersTimeStamp : timeStamp) <= base",
            "(writer == device ? othersTimeStamp : timeStamp) < base"),
        .expression(
            "versions of the same device count as another's", in: row,
            "(writer == device ? othersTimeStamp : timeStamp) <= base", "timeStamp <= base"),
        .expression(
            "the device's own versions leave a row unchanged", in: change, "change.base != row.timeStamp",
            "!row.isCurrent(change.base, for: part.device)"),
        .expression(
            "a row that nobody must have changed is not compared", in: "Model/SyncModel/Changes/Change.swift",
            "rules >= 4 && change.ifUnchanged", "false"),
        .expression(
            "a tombstone is compared with base, too", in: change, "!(isForLiveRow && row.isDeleted)", "true"),
        .expression(
            "another's tombstone is revived unseen", in: change, "isForLiveRow && isOwn", "isForLiveRow"),
        .expression(
            "a change that comes again replaces what its device did after it", in: change,
            "applied.isOvertaken(key, at: results.count)", "false"),
        .expression("the last writer is older than itself", in: change, "row.writer != part.device", "true"),
        .expression(
            "an equal updatedAt loses", in: change, "updatedAt(of: change) < row.updatedAt",
            "updatedAt(of: change) <= row.updatedAt",
            seeds: 2000),
        .expression(
            "every base revives a tombstone", in: change, "change.base == row.timeStamp", "change.base > .zero"),
        .expression("no change revives a tombstone", in: change, "change.base == row.timeStamp", "false"),
        .expression(
            "a tombstone is revived by a change that had not seen it", in: change,
            "(old?.isDeleted == true && !isCreation)", "false"),
        .expression(
            "updatedAt is not clamped", in: change, "min(change.updatedAt ?? part.logTime, part.logTime)",
            "change.updatedAt ?? part.logTime"),
        .expression(
            "updatedAt falls", in: change, "max(updatedAt(of: change), old?.updatedAt ?? .min)", "updatedAt(of: change)"
        ),
        .expression(
            "the newest version by another device is forgotten", in: change,
            "$0.writer == part.device ? $0.othersTimeStamp : $0.timeStamp", "$0.othersTimeStamp"),
        .expression("a version is not counted", in: change, "(old?.version ?? 0) + 1", "old?.version ?? 1"),
        .expression(
            "a row gets another creator", in: change, "old?.knowledgeID ?? change.knowledgeID", "change.knowledgeID"),
        .expression(
            "an atomic part is applied in spite of a conflict", in: change, "part.isAtomic", "false",
            within: "if part.isAtomic, hasRejection"),
        .statement("an aborted part uses up timeStamps", in: change, "timeStamp = timeStampBefore"),
        .expression(
            "an atomic part is applied in spite of a refusal by ingest", in: change,
            "part.isAtomic && part.hasIngestRefusal", "false"),
        .expression(
            "a row with an altered value counts as held", in: change, "isAltered ? nil : isFull ? .zero : before",
            "isFull ? .zero : before"),
        .expression(
            "a row of which some columns were written counts as held", in: change,
            "isAltered ? nil : isFull ? .zero : before", "isAltered ? nil : TimeStamp.zero"),
        .statement(
            "a row that a batch wrote twice counts as held as after its first write", in: change, "settleHeld()",
            within: "if mustSettle { settleHeld() }"),
        .statement(
            "the values of a delete that wrote nothing count as stored", in: change,
            "if case .applied = status { dropValues(of: change, key, index) }",
            unfound: "the simulated device stores no values of a delete"),
        .statement(
            "a revived row counts as held without all columns", in: change,
            "if isCreation, old != nil, !isFull { isAltered = true }",
            unfound: "the simulated device resets the columns of a revived row itself"),
        .statement(
            "a row with a default counts as held", in: change,
            "if index < schema.tables[change.table].columns.count { isAltered = true }",
            unfound: "the simulated device fills in declared defaults itself"),
        .expression(
            "a row whose updatedAt was clamped counts as held", in: change, "change.updatedAt != updatedAt", "false"),
        .expression(
            "a conflict locates the row as it was before the part", in: change,
            "positions[key].map { rows[$0].row } ?? lookup(key)", "lookup(key)"),
        .expression(
            "a row more is processed where the rows of a part have exactly the size that they may", in: touched,
            "size >= limit", "size > limit", seeds: 2000),
        .expression(
            "rows that do not exist do not count", in: change, "values.jsonSize", "row == nil ? 0 : values.jsonSize",
            within: "touched.add(values.jsonSize)"),
        .expression(
            "the row of a conflict counts once more with each change", in: change, "positions[key]",
            "positions[key].flatMap { rows[$0].written == nil ? nil : $0 }",
            within: "positions[key] ?? touch(key, lookup)"),
        .expression(
            "a row that was not read is looked up for a refusal", in: change,
            "!result.status.isBatchRowsTooLarge", "true"),
        .expression(
            "the earlier version of a row written twice is named wrongly", in: change,
            "earlier?.before ?? old?.timeStamp ?? .zero", "old?.timeStamp ?? .zero"),
        .expression(
            "a change with an id is applied again by a later batch", in: applied,
            "ownIndex[id].map { (change: own[$0], isOwn: true) } ?? earlier[id].map { (change: $0, isOwn: false) }",
            "ownIndex[id].map { (change: own[$0], isOwn: true) }"),
        .expression(
            "a change with an id is applied twice by one batch", in: applied,
            "ownIndex[id].map { (change: own[$0], isOwn: true) } ?? earlier[id].map { (change: $0, isOwn: false) }",
            "earlier[id].map { (change: $0, isOwn: false) }"),
        .expression(
            "other content under an id counts as a repeat", in: change, "first.identity.content == identity.content",
            "true"),
        .statement(
            "the changes of an aborted part count as applied", in: change, "applied.discardOwn()"),
        .expression(
            "a change that was applied before an aborted part is refused with it", in: change,
            "!repeatedResults.contains(position)", "true"),
        .statement("a repeated change leaves its row held", in: change, "dropRepeat(key, row)"),
        .statement(
            "a row that is written after a repeat of one of its changes counts as held", in: change,
            "if !repeated.isEmpty, repeated.contains(key) { isAltered = true }"),
        .expression(
            "an owner has a row more than its quota", in: usage, "after.rows > maxRows", "after.rows > maxRows + 1"),
        .expression(
            "an owner above its quota cannot edit", in: usage, "new.rows > old.rows", "true",
            unfound: "the quota of a run does not change, so no owner is above it"),
        .expression(
            "the bytes of an owner have no quota", in: usage, "after.bytes > maxBytes", "false"),
        .expression(
            "an edit that makes a row smaller is refused above the quota", in: usage, "new.bytes > old.bytes", "true",
            unfound: "the quota of a run does not change, so no owner is above it"),
        .expression(
            "deleted rows have no quota", in: usage, "new.allBytes > old.allBytes", "false",
            unfound: "devices edit too few rows for ten times a quota that still admits some"),
        .expression(
            "a deleted row keeps its share", in: usage, "isDeleted", "false",
            within: "self = isDeleted ?"),
        .statement("what a part writes is not counted", in: change, "usage = usage.replacing(old, with: new)"),
        .statement("an aborted part uses its owner's quota", in: change, "usage = usageBefore"),
        .expression(
            "owners have no quota", in: usage,
            "rules >= 3 ? OwnerQuota(maxRows: maxOwnerRows, maxBytes: maxOwnerBytes) : nil", "nil"),
        .expression(
            "ids of changes are ignored", in: "Model/SyncModel/Ordering/AppliedChange.swift",
            "rules >= 3 ? change.identity : nil", "nil"),
        .expression("a creation without a required column is stored", in: change, "column.isNullable", "true"),
        .expression(
            "the head of a cut page is not required", in: vector, "max(highest, cutFrom ?? .zero)", "highest"),
        .expression(
            "the floor of a vector is ignored", in: vector, "entries[device] ?? floor", "entries[device] ?? .zero"),
        .expression(
            "the pieces of a result have no end", in: "Model/SyncWire/OrderedPiece+Split.swift", "true", "false",
            within: "piece.isLast = true"),
        .expression(
            "two pieces of a result have the same number", in: "Model/SyncWire/OrderedPiece+Split.swift",
            "pieces.count", "pieces.count - 1", within: "piece.piece = pieces.count"),
    ]
}
