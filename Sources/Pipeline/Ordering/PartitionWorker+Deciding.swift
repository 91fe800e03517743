import ChangeLog
import RecordStore
import SyncModel
import SyncWire

/// A message of `changes`.
struct PartAtOffset: Sendable {
    let offset: Int64
    let part: ChangePart
}

/// What was read, before a step is decided, for the messages that it may take.
struct ReadAhead {
    var rows: [RowKey: OrderedRow] = [:]
    var progress: [ProgressRequest: DeviceProgress] = [:]
}

/// Deciding: from messages, rows and devices' progress to a step.
extension PartitionWorker {
    /// Reads the messages up to the first that cannot be read, and says what is wrong with that one.
    func decode(_ records: [LogRecord]) -> (parts: [PartAtOffset], unreadable: OrderingError?) {
        var parts: [PartAtOffset] = []
        parts.reserveCapacity(records.count)
        for record in records {
            do {
                parts.append(PartAtOffset(offset: record.offset, part: try ChangePart(decoding: record.value)))
            } catch {
                let place = TopicPartition(.changes, partition)
                return (parts, .unreadableRecord(place, offset: record.offset, reason: "\(error)"))
            }
        }
        return (parts, nil)
    }

    /// The messages up to one whose device's progress may depend on those before it in a way that only the tables can
    /// tell: what that one touches is read later.
    func stretch(of parts: ArraySlice<PartAtOffset>) -> ArraySlice<PartAtOffset> {
        var highest: [DeviceKey: Int64] = [:]
        for (index, part) in zip(parts.indices, parts.lazy.map(\.part)) {
            guard let batch = part.batch, !state.hasSeen(part) else { continue }
            let before = highest[part.deviceKey] ?? overlay.highestBatch(of: part.deviceKey)
            if batch < before, index > parts.startIndex { return parts[..<index] }
            highest[part.deviceKey] = max(before, batch)
        }
        return parts
    }

    /// Reads in bulk what the messages touch and the overlay does not hold.
    ///
    /// While this waits the other task may write steps and drop them from the overlay, so what the overlay holds now is
    /// copied. What it does not hold now, no step that is not written touches: the tables' answer stands, as long as nobody
    /// else has moved them on meanwhile.
    func readAhead(_ parts: ArraySlice<PartAtOffset>) async throws -> ReadAhead {
        var known = ReadAhead()
        var rowKeys = Set<RowKey>(minimumCapacity: parts.reduce(0) { $0 + $1.part.changes.count })
        var requests = Set<ProgressRequest>()
        beginReading()
        for part in parts.lazy.map(\.part) where !state.hasSeen(part) {
            for key in part.rowsTouched {
                if let row = overlay.row(key) { known.rows[key] = row } else { rowKeys.insert(key) }
            }
            guard let batch = part.batch else { continue }
            let request = ProgressRequest(key: part.deviceKey, batch: batch)
            if overlay.holds(part.deviceKey) {
                known.progress[request] = overlay.progress(of: part.deviceKey, batch: batch)
            } else {
                requests.insert(request)
            }
        }
        if !rowKeys.isEmpty {
            let rows = try await store.rows(Array(rowKeys), in: partition, schemaOrdinal: state.schemaOrdinal)
            for row in rows { known.rows[row.key] = row }
        }
        if !requests.isEmpty {
            let asked = Array(requests)
            let answers = try await store.progress(asked, in: partition)
            for (request, progress) in zip(asked, answers) { known.progress[request] = progress }
        }
        if !rowKeys.isEmpty || !requests.isEmpty { try await requireOwnTables() }
        return known
    }

    /// Runs the machine over the messages, each seeing what those before it left, and takes those off that it decided.
    ///
    /// - Returns: the step, `nil` when not even the first message could be decided; and why a message cannot be. Without
    ///   such a reason the next message waits for the tables to have all that comes before it.
    func decide(
        _ parts: inout ArraySlice<PartAtOffset>, _ known: ReadAhead, schemas: SchemaHistory
    ) -> (step: PendingStep?, pause: OrderingError?) {
        stepNumber += 1
        var step = PendingStep(number: stepNumber, state: state)
        var pause: OrderingError?
        let first = parts.startIndex
        while let next = parts.first {
            let part = next.part
            // Offsets may skip (compaction, transactions' markers), and the state names the next one.
            var before = step.state
            before.nextOffset = next.offset
            // A repeated delivery is dropped whatever its device did.
            guard let progress = before.hasSeen(part) ? DeviceProgress() : progress(of: part, known) else { break }
            do throws(OrderingMachine.Pause) {
                let result = try machine.step(part, state: before, schemas: schemas, progress: progress) { key in
                    overlay.row(key) ?? known.rows[key]
                }
                let records = try publication(of: result, for: next, schemas: schemas)
                step.add(result, records, key: part.deviceKey)
                overlay.add(result.written, result.outcome, of: part.deviceKey, step: stepNumber)
            } catch {
                pause = .paused(TopicPartition(.changes, partition), offset: next.offset, reason: error)
                break
            }
            parts.removeFirst()
        }
        guard parts.startIndex > first else { return (nil, pause) }
        state = step.state
        return (step, pause)
    }

    /// A device's progress as the messages before this one left it; `nil` when only the tables can tell, once they have
    /// all of those.
    ///
    /// A device keeps its newest outcomes, so those of steps not yet written may have pushed out one that the tables still
    /// have. Which of the two a worker met must not decide (I4).
    private func progress(of part: ChangePart, _ known: ReadAhead) -> DeviceProgress? {
        guard let batch = part.batch else { return DeviceProgress() }
        if overlay.holds(part.deviceKey) { return overlay.progress(of: part.deviceKey, batch: batch) }
        return known.progress[ProgressRequest(key: part.deviceKey, batch: batch)]
    }

    /// The records of `ordered` that tell of a message; none of one that was dropped.
    private func publication(
        of step: OrderingMachine.Step, for message: PartAtOffset, schemas: SchemaHistory
    ) throws(OrderingMachine.Pause) -> [NewRecord] {
        guard let decision = step.decision else { return [] }
        let part = message.part
        guard let schema = schemas[step.state.schemaOrdinal] else {
            throw .unknownSchemaNumber(step.state.schemaOrdinal)
        }
        var result = OrderedPiece(
            epoch: part.epoch, changesOffset: message.offset, schema: schema.version.hash, upload: part.upload,
            uploadPart: part.part, logTime: part.logTime, timeStamp: step.state.timeStamp, owner: part.owner,
            device: part.device, batch: part.batch, verdict: .repeated, contentHash: part.contentHash)
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
