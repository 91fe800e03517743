/// Ordering as a deterministic state machine: (rows touched, device progress, changes applied, owner's usage, partition state) +
/// part → (new rows, decision, new usage, new state).
///
/// It uses no store, log or clock: the same parts give the same results on every machine, permanently (I4).
package struct OrderingMachine: Sendable {
    /// Why a partition pauses before a part until an operator acts or a newer version of Weir is deployed.
    package enum Pause: Error, Sendable, Hashable {
        /// The part names the hash of a schema version that this worker does not know yet.
        case unknownSchema(String)
        /// The partition has reached a schema version that this worker does not know yet.
        case unknownSchemaNumber(Int)
        /// The part needs a rules version that this code does not implement.
        case unknownRules(Int)
        /// The part has a different epoch.
        case otherEpoch(String)
        /// The next timeStamp would reach 2^53.
        case timeStampsExhausted
        /// The part violates the contract of `changes`.
        case invalidPart(String)
    }

    /// The result of one part.
    package struct Step: Sendable, Hashable {
        /// The state after the part.
        package var state: PartitionState
        /// The rows written, each once, in the order of their timeStamps.
        package var written: [WrittenRow]
        /// `nil` for a repeated delivery, which is dropped.
        package var decision: OrderingDecision?
        /// The outcome to store for the device, if any.
        package var outcome: Outcome?
        /// The applied changes that had a `changeId`, each id once.
        package var applied: [AppliedChange] = []
        /// What the part's owner has after it; `nil` where that is what it had before.
        package var usage: OwnerUsage?
        /// The size of the rows that the part touched (``TouchedRows``); 0 before rules version 8.
        package var touchedBytes = 0

        package var rows: [OrderedRow] { written.map(\.row) }
    }

    /// Parts with a different epoch pause the partition.
    package let epoch: String
    package let clock: TimeStampClock
    /// The limit of a row, where a part does not have a lower one.
    private let maximumRowBytes: Int

    package init(_ history: History) {
        epoch = history.epoch
        clock = history.clock
        maximumRowBytes = history.maximumRowBytes
    }

    /// Orders one part.
    ///
    /// - Parameters:
    ///   - part: the record of `changes` at `state.nextOffset`.
    ///   - state: the partition's state before the part.
    ///   - schemas: the known versions.
    ///   - progress: of this device with this owner, with the outcome of this batch if it is stored.
    ///   - usage: what the part's owner had before the part.
    ///   - applied: returns the change that this device had applied for this owner, before the part, under the id of one of
    ///     ``ChangePart/appliedChangeKeys``.
    ///   - row: returns a row of ``ChangePart/rowsTouched`` as it was before the part.
    ///   - copied: gets the number of bytes of rows' values that were copied, which depends on how the rows are stored.
    package func step(
        _ part: ChangePart, state: PartitionState, schemas: SchemaHistory, progress: DeviceProgress,
        usage: OwnerUsage, applied: (ShortDigest) -> AppliedChange?, row: (RowKey) -> OrderedRow?,
        copied: (Int) -> Void = { _ in }
    ) throws(Pause) -> Step {
        guard (1...RulesVersion.current).contains(part.rules) else { throw .unknownRules(part.rules) }
        guard part.epoch.utf8.elementsEqual(epoch.utf8) else { throw .otherEpoch(part.epoch) }
        guard let version = schemas[part.schema] else { throw .unknownSchema(part.schema) }
        var next = state
        next.nextOffset += 1
        if state.hasSeen(part) { return Step(state: next, written: [], decision: nil, outcome: nil) }
        next.uploads[part.upload.partition] = UploadProgress(offset: part.upload.offset, part: part.part)
        next.schemaOrdinal = max(state.schemaOrdinal, version.version.ordinal)
        if let known = decisionBeforeRules(part, progress) {
            return Step(state: next, written: [], decision: known, outcome: nil)
        }
        guard let reached = schemas[next.schemaOrdinal]?.schema else {
            throw .unknownSchemaNumber(next.schemaOrdinal)
        }

        var rules = ChangeRules(
            part: part, schema: version.schema, reached: reached, clock: clock, timeStamp: state.timeStamp,
            usage: usage, maximumRowBytes: min(part.maxRowBytes, maximumRowBytes), applied: applied)
        for change in part.changes { try rules.apply(change, row: row) }
        let ordered = rules.finish(row: row)
        copied(ordered.copiedBytes)
        next.timeStamp = ordered.timeStamp
        let outcome = part.batch.map {
            Outcome(
                batch: $0, contentHash: part.contentHash, timeStamp: ordered.timeStamp, results: ordered.results,
                summary: part.summary)
        }
        let decision = OrderingDecision.ordered(results: ordered.results, summary: part.summary)
        return Step(
            state: next, written: ordered.written, decision: decision, outcome: outcome, applied: ordered.applied,
            usage: ordered.usage == usage ? nil : ordered.usage,
            touchedBytes: part.rules >= 8 ? ordered.touchedBytes : 0)
    }

    /// Whether ``step(_:state:schemas:progress:usage:applied:row:copied:)`` looks up rows: not for a repeat of a batch, for example.
    package func needsRows(_ part: ChangePart, _ progress: DeviceProgress) -> Bool {
        decisionBeforeRules(part, progress) == nil
    }

    /// Rule 1, and everything else that decides a part without its changes.
    private func decisionBeforeRules(_ part: ChangePart, _ progress: DeviceProgress) -> OrderingDecision? {
        if part.hasOtherEpoch { return .refused(.historyChanged) }
        guard let batch = part.batch, batch <= progress.highestBatch else { return nil }
        guard let first = progress.outcome, first.batch == batch else { return .refused(.outcomeExpired) }
        return first.contentHash == part.contentHash ? .repeated(first) : .refused(.batchMismatch)
    }
}
