/// Ordering as one deterministic state machine: (rows touched, device progress, partition state) + message → (new rows,
/// decision, new state).
///
/// It knows no store, no log and no clock. The same messages give the same results on every machine, for ever (I4).
package struct OrderingMachine: Sendable {
    /// Why a partition must stop before a message, until an operator or a newer version of Weir has acted.
    package enum Pause: Error, Sendable, Hashable {
        /// The message names a schema version, by its hash, that this worker does not know yet.
        case unknownSchema(String)
        /// The partition has reached a schema version that this worker does not know yet.
        case unknownSchemaNumber(Int)
        /// The message needs rules that this code does not have.
        case unknownRules(Int)
        /// The message is of another history.
        case otherEpoch(String)
        /// Every timeStamp below 2^53 is used up.
        case timeStampsExhausted
        /// The message breaks the contract of `changes`.
        case invalidPart(String)
    }

    /// What one message came to.
    package struct Step: Sendable, Hashable {
        /// The state after it.
        package var state: PartitionState
        /// The rows written, each once in its final state, in the order of their timeStamps.
        package var written: [WrittenRow]
        /// What to tell the device; `nil` when the message was a repeated delivery, which is dropped.
        package var decision: OrderingDecision?
        /// The outcome to keep for the device; `nil` when there is none to add.
        package var outcome: Outcome?

        /// The rows written, without what they took the place of.
        package var rows: [OrderedRow] { written.map(\.row) }
    }

    /// The history whose messages count.
    package let epoch: String
    /// How timeStamps grow.
    package let clock: TimeStampClock

    /// Makes the machine of one history.
    package init(epoch: String, clock: TimeStampClock) {
        self.epoch = epoch
        self.clock = clock
    }

    /// Orders one message.
    ///
    /// - Parameters:
    ///   - part: the message at `state.nextOffset`.
    ///   - state: the partition before it.
    ///   - schemas: the versions known.
    ///   - progress: the device's with this owner, with the outcome of this batch where one is kept.
    ///   - row: looks up a row that ``ChangePart/rowsTouched`` names as it stands before the message.
    package func step(
        _ part: ChangePart, state: PartitionState, schemas: SchemaHistory, progress: DeviceProgress,
        row: (RowKey) -> OrderedRow?
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
            part: part, schema: version.schema, reached: reached, clock: clock, timeStamp: state.timeStamp)
        for change in part.changes { try rules.apply(change, row: row) }
        let ordered = rules.finish(row: row)
        next.timeStamp = ordered.timeStamp
        let outcome = part.batch.map {
            Outcome(
                batch: $0, contentHash: part.contentHash, timeStamp: ordered.timeStamp, results: ordered.results,
                summary: part.summary)
        }
        let decision = OrderingDecision.ordered(results: ordered.results, summary: part.summary)
        return Step(state: next, written: ordered.written, decision: decision, outcome: outcome)
    }

    /// Rule 1, and what else decides a batch before its changes are looked at.
    private func decisionBeforeRules(_ part: ChangePart, _ progress: DeviceProgress) -> OrderingDecision? {
        if part.hasOtherEpoch { return .refused(.historyChanged) }
        guard let batch = part.batch, batch <= progress.highestBatch else { return nil }
        guard let first = progress.outcome, first.batch == batch else { return .refused(.outcomeExpired) }
        return first.contentHash == part.contentHash ? .repeated(first) : .refused(.batchMismatch)
    }
}
