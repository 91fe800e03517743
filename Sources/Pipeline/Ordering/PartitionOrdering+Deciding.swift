import ChangeLog
import RecordStore
import SyncModel
import SyncWire

/// A part of a batch, from a record of `changes`.
struct PartAtOffset: Sendable {
    let offset: Int64
    let part: ChangePart
}

/// The rows, the devices' progress, the applied changes and the owners' usage that the parts of a step need.
struct ReadAhead: Sendable {
    /// The existing rows.
    var rows: [RowKey: OrderedRow] = [:]
    /// The rows that were requested and not looked up.
    var unread: Set<RowKey> = []
    var progress: [ProgressRequest: DeviceProgress] = [:]
    var applied: [AppliedChangeKey: AppliedChange] = [:]
    var usage: [SyncID: OwnerUsage] = [:]

    /// A row as it was before the step; `nil` if it does not exist.
    func row(_ key: RowKey) -> OrderedRow? {
        if let row = rows[key] { return row }
        // Deciding without a row that exists would give other results than a replay (I4).
        precondition(unread.isEmpty || !unread.contains(key), "a part is decided when its rows are read")
        return nil
    }
}

/// What to read from the tables before a step is decided.
struct Lookups: Sendable {
    /// What the overlay has already.
    var known = ReadAhead()
    /// Each once, in the order in which the parts touch them.
    var rows: [RowKey] = []
    var progress: Set<ProgressRequest> = []
    var applied: Set<AppliedChangeKey> = []
    /// The owners of the parts that have changes.
    var owners: Set<SyncID> = []

    var isEmpty: Bool { rows.isEmpty && progress.isEmpty && applied.isEmpty && owners.isEmpty }
}

/// Deciding: from parts, rows and devices' progress to a step.
extension PartitionOrdering {
    /// Decodes the records up to the first that cannot be decoded, and describes what is wrong with that one.
    func decode(_ records: some Collection<LogRecord>) -> (parts: [PartAtOffset], unreadable: OrderingError?) {
        var parts: [PartAtOffset] = []
        parts.reserveCapacity(records.count)
        for record in records {
            do {
                parts.append(PartAtOffset(offset: record.offset, part: try ChangePart(decoding: record.value)))
            } catch {
                let source = TopicPartition(.changes, partition)
                return (parts, .unreadableRecord(source, offset: record.offset, reason: "\(error)"))
            }
        }
        return (parts, nil)
    }

    /// A step that moves the position past a record that is left out.
    mutating func pass(_ record: LogRecord) -> PendingStep {
        stepNumber += 1
        state.nextOffset = record.offset + 1
        return PendingStep(number: stepNumber, state: state)
    }

    /// The parts that one step may take: as many as need rows of about ``maximumRowBytes``, at least one, and up to one with a
    /// lower batch number than its device has in the parts before it or in unwritten steps.
    ///
    /// Whether such a batch is a repeat is known only once the tables hold those.
    func prefix(of parts: ArraySlice<PartAtOffset>) -> ArraySlice<PartAtOffset> {
        var highest: [DeviceKey: Int64] = [:]
        var rows = 0
        for (index, part) in zip(parts.indices, parts.lazy.map(\.part)) {
            rows += part.changes.count
            if rows * averageRowBytes > maximumRowBytes, index > parts.startIndex { return parts[..<index] }
            guard let batch = part.batch, !state.hasSeen(part) else { continue }
            let before = highest[part.deviceKey] ?? overlay.highestBatch(of: part.deviceKey)
            if batch < before, index > parts.startIndex { return parts[..<index] }
            highest[part.deviceKey] = max(before, batch)
        }
        return parts
    }

    /// Updates the estimate of what parts need.
    ///
    /// - Parameter count: how many were looked up; those that do not exist take nothing.
    mutating func recordSize(of rows: [OrderedRow], lookedUp count: Int) {
        guard count > 0 else { return }
        let bytes = rows.reduce(0) { $0 + $1.values.bytes.count } / count + 512
        averageRowBytes = (averageRowBytes * 3 + bytes) / 4
    }

    /// What the parts touch: from the overlay where it has it, else to be read from the tables.
    ///
    /// While the tables are read, the writing task may write steps and remove them from the overlay, so what the overlay has
    /// now is copied. Whatever it does not have now, no unwritten step touches: the tables' answer is right as long as no
    /// other worker moves them, which ``isOwn(_:)`` shows afterwards.
    mutating func beginReadAhead(_ parts: ArraySlice<PartAtOffset>) -> Lookups {
        var lookups = Lookups()
        let count = parts.reduce(0) { $0 + $1.part.changes.count }
        lookups.rows.reserveCapacity(count)
        var requested = Set<RowKey>(minimumCapacity: count)
        beginReading()
        for part in parts.lazy.map(\.part) where !state.hasSeen(part) {
            for key in part.rowsTouched {
                if let row = overlay.row(key) {
                    lookups.known.rows[key] = row
                } else if requested.insert(key).inserted {
                    lookups.rows.append(key)
                }
            }
            if !part.changes.isEmpty {
                if let usage = overlay.usage(of: part.owner) {
                    lookups.known.usage[part.owner] = usage
                } else {
                    lookups.owners.insert(part.owner)
                }
            }
            for key in part.appliedChangeKeys {
                if let change = overlay.appliedChange(key) {
                    lookups.known.applied[key] = change
                } else {
                    lookups.applied.insert(key)
                }
            }
            guard let batch = part.batch else { continue }
            let request = ProgressRequest(key: part.deviceKey, batch: batch)
            if overlay.holds(part.deviceKey) {
                lookups.known.progress[request] = overlay.progress(of: part.deviceKey, batch: batch)
            } else {
                lookups.progress.insert(request)
            }
        }
        return lookups
    }

    /// The parts, up to the first that needs a row which was not looked up.
    func readPrefix(of parts: ArraySlice<PartAtOffset>, _ known: ReadAhead) -> ArraySlice<PartAtOffset> {
        if known.unread.isEmpty { return parts }
        return parts.prefix { next in
            state.hasSeen(next.part) || !next.part.rowsTouched.contains { known.unread.contains($0) }
        }
    }

    /// The rows to look up next for the first part: those that its rules may look at and that are unread.
    ///
    /// Rows count here as they were read, so never more than in the rules, which lift them to the newest schema version and
    /// count new rows: the rules reach their limit first, and look at no row that is unread then. That holds for the first part
    /// alone: one before it could make a row smaller.
    func nextRows(of part: ChangePart, _ known: ReadAhead) -> [RowKey] {
        // Without its progress the part is not decided now.
        guard !state.hasSeen(part), let progress = progress(of: part, known), machine.needsRows(part, progress) else {
            return []
        }
        // About what one lookup returns, so that it is not searched for many rows that it leaves out.
        let maximumCount = max(2 * maximumRowBytes / averageRowBytes, 16)
        var touched = TouchedRows(limit: part.batchRowLimit)
        var counted: Set<RowKey> = []
        var next: [RowKey] = []
        for key in part.rowsTouched where counted.insert(key).inserted {
            if touched.isFull || next.count == maximumCount { break }
            if known.unread.contains(key) {
                next.append(key)
            } else {
                touched.add(known.row(key)?.values.jsonSize ?? 0)
            }
        }
        return next
    }

    /// Runs the machine over the parts, each after the results of those before it, and removes the decided ones.
    ///
    /// - Returns: the step, `nil` when not even the first part could be decided; and why the next part cannot be. Without such
    ///   an obstacle the next part waits until the tables hold all that comes before it.
    mutating func decide(
        _ parts: inout ArraySlice<PartAtOffset>, _ known: ReadAhead, schemas: SchemaHistory
    ) -> (step: PendingStep?, obstacle: OrderingError?) {
        stepNumber += 1
        var step = PendingStep(number: stepNumber, state: state)
        var obstacle: OrderingError?
        let first = parts.startIndex
        while let next = parts.first {
            let part = next.part
            // Offsets may skip (compaction, transactions' markers), and the state names the next one.
            var before = step.state
            before.nextOffset = next.offset
            // A repeated delivery is dropped whatever its device did.
            guard let progress = before.hasSeen(part) ? DeviceProgress() : progress(of: part, known) else { break }
            let usage = overlay.usage(of: part.owner) ?? known.usage[part.owner] ?? OwnerUsage()
            do throws(OrderingMachine.Pause) {
                let result = try machine.step(
                    part, state: before, schemas: schemas, progress: progress, usage: usage
                ) { id in
                    let key = AppliedChangeKey(device: part.deviceKey, id: id)
                    return overlay.appliedChange(key) ?? known.applied[key]
                } row: { key in
                    overlay.row(key) ?? known.row(key)
                } copied: { bytes in
                    step.counts.copiedBytes += bytes
                }
                let records = try publication(of: result, for: next, schemas: schemas)
                step.add(result, records, key: part.deviceKey)
                overlay.add(result, of: part.deviceKey, step: stepNumber)
            } catch {
                obstacle = .paused(TopicPartition(.changes, partition), offset: next.offset, reason: error)
                break
            }
            parts.removeFirst()
            if step.size > maximumRowBytes { break }
        }
        guard parts.startIndex > first else { return (nil, obstacle) }
        state = step.state
        return (step, obstacle)
    }

    /// A device's progress after the parts before this one; `nil` when only the tables show it, once they hold all of those.
    ///
    /// A device keeps its newest outcomes, so those of unwritten steps may have displaced one that the tables still have.
    /// Whether a worker finds it there must not influence the result (I4).
    private func progress(of part: ChangePart, _ known: ReadAhead) -> DeviceProgress? {
        guard let batch = part.batch else { return DeviceProgress() }
        if overlay.holds(part.deviceKey) { return overlay.progress(of: part.deviceKey, batch: batch) }
        return known.progress[ProgressRequest(key: part.deviceKey, batch: batch)]
    }

    /// The records of `ordered` with the result of a part; none for a part that was dropped.
    private func publication(
        of step: OrderingMachine.Step, for source: PartAtOffset, schemas: SchemaHistory
    ) throws(OrderingMachine.Pause) -> [NewRecord] {
        guard let decision = step.decision else { return [] }
        let part = source.part
        guard let schema = schemas[step.state.schemaOrdinal] else {
            throw .unknownSchemaNumber(step.state.schemaOrdinal)
        }
        var result = OrderedPiece(
            epoch: part.epoch, changesOffset: source.offset, schema: schema.version.hash, upload: part.upload,
            uploadPart: part.part, logTime: part.logTime, timeStamp: step.state.timeStamp, owner: part.owner,
            device: part.device, batch: part.batch, verdict: .repeated, contentHash: part.contentHash)
        result.touchedBytes = step.touchedBytes
        // Its other parts are ordered by themselves, so that gateways wait for them whatever becomes of this one.
        result.summary = part.summary.map { BatchSummary(changeCount: $0.changeCount, otherOwners: $0.otherOwners) }
        switch decision {
        case .ordered(let results, let summary):
            result.verdict = .ordered
            result.rows = step.written
            result.results = results
            result.summary = summary
        case .repeated:
            result.verdict = .repeated
        case .refused(let refusal):
            result.verdict = .refused(refusal)
        }
        let destination = TopicPartition(.ordered, partition)
        let key = Array(part.owner.text.utf8)
        return result.split(at: pieceSize, naming: schema.schema).map {
            NewRecord(to: destination, key: key, value: $0.encode(naming: schema.schema))
        }
    }
}
