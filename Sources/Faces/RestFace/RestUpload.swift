import FanOutLink
import Gateway
import HTTP
import JSON
import JSONText
import SyncModel

/// `POST` and `PUT /rest/{table}`: one record, or an array that is stored as a whole or not at all.
struct RestUpload: Sendable {
    private let table: FaceTable
    private let session: any FaceSession
    private let answers: RestAnswers
    /// POST: the rows must not exist.
    private let creates: Bool

    init(_ table: FaceTable, _ session: any FaceSession, _ answers: RestAnswers, creates: Bool) {
        self.table = table
        self.session = session
        self.answers = answers
        self.creates = creates
    }

    /// What is known of one record.
    private enum Verdict {
        case open
        /// Stored with this `Ts`.
        case stored(TimeStamp)
        /// The row is there as sent, from an earlier request.
        case repeated(FaceRow)
        case conflict(FaceRow)
        case refused(FaceRefusal, FaceRow?)

        var isOpen: Bool { if case .open = self { true } else { false } }

        var isFailure: Bool {
            switch self {
            case .conflict, .refused: true
            case .open, .stored, .repeated: false
            }
        }
    }

    func respond(to body: HTTPBody) async throws -> HTTPResponse {
        let (records, isArray) = try session.parse(body) { (root) throws(Problem) in try read(root) }
        var verdicts: [Verdict] = records.map {
            switch $0 {
            case .success: .open
            case .failure(let refusal): .refused(refusal, nil)
            }
        }
        if verdicts.contains(where: \.isFailure) { throw try await refusal(of: body, verdicts, isArray) }
        let sent = try records.map { try $0.get() }
        if isArray, !creates {
            try await refuseUnknownDeletes(sent, &verdicts)
            if verdicts.contains(where: \.isFailure) { throw try await refusal(of: body, verdicts, isArray) }
        }
        var head = TimeStamp.zero
        // Ends, since each round decides at least one record: all are stored, one fails, or repeated ones are left out of the next.
        while !verdicts.isEmpty {
            let open = verdicts.indices.filter { verdicts[$0].isOpen }
            if open.isEmpty { break }
            head = try await submit(open, of: sent, &verdicts)
            answers.uploaded(session.device, table.index)
            if verdicts.contains(where: \.isFailure) {
                try await noteShown(verdicts)
                throw failure(verdicts, isArray)
            }
        }
        // A device removes the rows that it deleted, and then names a `Ts` from before: all gateways must know.
        try await WrittenPosition(session, of: table).raise(to: head, isDurable: sent.contains(where: \.isDeleted))
        return try await answer(sent, verdicts, isArray: isArray, head: head)
    }

    // MARK: Reading

    private func read(
        _ root: borrowing JSONValue
    ) throws(Problem) -> (records: [Result<RestRecord, FaceRefusal>], isArray: Bool) {
        guard var elements = root.elements else { return ([record(root)], false) }
        var records: [Result<RestRecord, FaceRefusal>] = []
        var ids: Set<RowID> = []
        while let element = elements.next() {
            guard records.count < session.limits.outcome.maxChanges else {
                throw Problem(
                    .batchTooLarge, "at most \(session.limits.outcome.maxChanges) records are allowed at once")
            }
            var record = record(element)
            if case .success(let sent) = record, !ids.insert(sent.id).inserted {
                record = .failure(FaceRefusal(.invalidChange, "the array has this id twice"))
            }
            records.append(record)
        }
        return (records, true)
    }

    private func record(_ value: borrowing JSONValue) -> Result<RestRecord, FaceRefusal> {
        do throws(FaceRefusal) {
            let record = try RestRecord(value, of: table.table, limits: session.limits)
            if creates, record.ts != nil {
                throw FaceRefusal(.invalidChange, "a new record has no Ts: records with a Ts are sent with PUT")
            }
            if !creates, record.ts == nil {
                throw FaceRefusal(.invalidChange, "Ts is missing: new records are sent with POST")
            }
            return .success(record)
        } catch {
            return .failure(error)
        }
    }

    // MARK: Storing

    /// A delete of a row that does not exist, of which ordering stores nothing.
    private static var unknown: Verdict { .refused(FaceRefusal(.rowGone, "there is no row of this id"), nil) }

    /// Refuses deletes of rows that do not exist: to ordering they succeed, so that the rest of the array would be stored.
    ///
    /// Rows are never removed: those that are found are there when the array is ordered.
    private func refuseUnknownDeletes(_ records: [RestRecord], _ verdicts: inout [Verdict]) async throws {
        let deleted = records.indices.filter { records[$0].isDeleted }
        if deleted.isEmpty { return }
        let ids = deleted.map { records[$0].id }
        let newest = deleted.compactMap { records[$0].ts }.max() ?? .zero
        let known: (ids: Set<RowID>, count: Int)
        do {
            known = try await existing(ids, newest)
        } catch let problem as Problem where problem.code == .positionAhead {
            // No row has this Ts: whether the others exist decides only which answer the request gets.
            known = try await existing(ids, .zero)
        }
        for index in deleted.prefix(known.count) where !known.ids.contains(records[index].id) {
            verdicts[index] = Self.unknown
        }
        for index in deleted.dropFirst(known.count) {
            verdicts[index] = .refused(
                FaceRefusal(.batchRowsTooLarge, "the rows of the array are too large together: send fewer at once"), nil
            )
        }
    }

    /// Those of some ids that rows have, and how many were looked up: once the rows are as large as ordering lets a batch change,
    /// the array is refused whatever the others are.
    private func existing(_ ids: [RowID], _ leastHead: TimeStamp) async throws -> (ids: Set<RowID>, count: Int) {
        let names = table.table.columns.reduce(1) { $0 + $1.name.utf8.count + 4 }
        var rows = RestRows(ids, of: table, session, leastHead: leastHead)
        var existing: Set<RowID> = []
        var size = 0
        for (count, id) in ids.enumerated() {
            if size >= session.limits.outcome.maxBatchRowBytes { return (existing, count) }
            guard let row = try await rows.row(id) else { continue }
            existing.insert(id)
            // Ordering counts values without the names of their columns.
            size += max(0, row.valuesSize - names)
        }
        return (existing, ids.count)
    }

    /// Submits the records that are not decided yet, as a whole or not at all.
    ///
    /// - Returns: the head of a stream that has their rows.
    private func submit(_ open: [Int], of records: [RestRecord], _ verdicts: inout [Verdict]) async throws -> TimeStamp
    {
        var batch = FaceBatch(isAtomic: true)
        /// The result of each record's row: that of its last change.
        var last: [Int] = []
        for index in open {
            add(records[index], to: &batch)
            last.append(batch.count - 1)
        }
        let outcome = try await session.submit(batch)
        var first = 0
        for (index, last) in zip(open, last) {
            let results = outcome.results[first...last]
            first = last + 1
            verdicts[index] = verdict(of: results, records[index])
        }
        return outcome.head
    }

    private func add(_ record: RestRecord, to batch: inout FaceBatch) {
        batch.add { writer in
            writer.member("table", table.table.name)
            writer.member("id", record.id.text)
            writer.member("base", record.ts?.rawValue ?? 0)
            writer.member("ifUnchanged", true)
            if record.isDeleted, !creates { writer.member("deleted", true) }
            writer.values(record.values, of: table.table)
        }
        batch.note(record.values, of: table)
        // A record that was made and deleted before it was ever sent is a deleted row, so that it has a Ts.
        guard record.isDeleted, creates else { return }
        batch.add(isLimited: false) { writer in
            writer.member("table", table.table.name)
            writer.member("id", record.id.text)
            writer.member("deleted", true)
        }
    }

    private func verdict(of results: ArraySlice<FaceOutcome.Result>, _ record: RestRecord) -> Verdict {
        var verdict = Verdict.open
        for result in results {
            switch result.status {
            case .applied(.zero, _): return Self.unknown
            case .applied(let ts, _), .deleted(let ts, _): verdict = .stored(ts)
            case .conflict:
                guard let row = result.row else {
                    return .refused(FaceRefusal(.rowGone, "the row is not as it was"), nil)
                }
                let isRepeated = record.isRepeated(by: row, of: table.table)
                return isRepeated ? .repeated(row) : .conflict(row)
            // Another one of the array is not as it must be.
            case .refused(.batchAborted, _): verdict = .open
            case .refused(let code, let message): return .refused(FaceRefusal(code, message), result.row)
            }
        }
        return verdict
    }

    /// Notes the `Ts` of rows that the answer shows, before it is sent: that a device has them does not prove that it has what is
    /// below.
    private func noteShown(_ verdicts: [Verdict]) async throws {
        var greatest = TimeStamp.zero
        for verdict in verdicts {
            switch verdict {
            case .conflict(let row), .refused(_, let row?):
                if row.writer != .device { greatest = max(greatest, row.timeStamp) }
            case .open, .stored, .repeated, .refused(_, nil): continue
            }
        }
        let known = try await session.positions(isFresh: false)
        let shown = table.shownWithConflicts(in: session.epoch)
        guard greatest.rawValue > max(known[table.watermark(in: session.epoch)] ?? 0, known[shown] ?? 0) else { return }
        try await session.raise([shown: greatest.rawValue], isDurable: true)
    }

    // MARK: Answers

    private func answer(
        _ records: [RestRecord], _ verdicts: [Verdict], isArray: Bool, head: TimeStamp
    ) async throws -> HTTPResponse {
        let decided = zip(records, verdicts).compactMap { record, verdict -> RestStored.Record? in
            switch verdict {
            case .stored(let ts): .stored(record, ts)
            case .repeated(let row): .repeated(row)
            case .open, .conflict, .refused: nil
            }
        }
        var stored = RestStored(decided, areNew: creates, of: table, session, leastHead: head)
        if isArray, !creates {
            let pieces = RestStoredPieces(stored)
            return try await session.stream(RestFace.headers) { try await pieces.next() }
        }
        var writer = JSONWriter(capacity: 256 * records.count)
        if isArray { writer.beginArray() }
        while let shown = try await stored.next() { shown.write(to: &writer) }
        if isArray { writer.endArray() }
        return .uncached(creates ? 201 : 200, writer.take())
    }

    /// The problem of a request that the face refuses itself: as all of its records would, they count for the rates.
    private func refusal(of body: HTTPBody, _ verdicts: [Verdict], _ isArray: Bool) async throws -> Problem {
        var batch = FaceBatch()
        batch.addRefused(verdicts.count, bytes: body.count)
        _ = try await session.submit(batch)
        return failure(verdicts, isArray)
    }

    /// The problem of a request of which nothing was stored.
    private func failure(_ verdicts: [Verdict], _ isArray: Bool) -> Problem {
        var refusal: FaceRefusal?
        var refusals = JSONWriter()
        var shown = JSONWriter()
        refusals.array { refusals in
            shown.array { shown in
                for (position, verdict) in verdicts.enumerated() {
                    var row: FaceRow?
                    switch verdict {
                    case .refused(let found, let there):
                        refusal = refusal ?? found
                        row = there
                        refusals.refusal(found, at: position)
                    case .conflict(let there): row = there
                    case .open, .stored, .repeated: break
                    }
                    guard let row else { continue }
                    shown.object { writer in
                        writer.member("position", position)
                        writer.name("record")
                        writer.record(row, table.table)
                    }
                }
            }
        }
        if !isArray, let refusal, refusal.code == .rowGone { return Problem(.notFound, "there is no row of this id") }
        var problem =
            refusal.map { Problem(.changeRefused, $0.message) }
            ?? Problem(
                .conflict,
                creates
                    ? "there is such a row already: nothing was stored"
                    : "the row is not at this Ts: nothing was stored")
        if refusal != nil { problem.members.append(("refusals", refusals.take())) }
        problem.members.append(("records", shown.take()))
        if !isArray, case .conflict(let row) = verdicts.first {
            var writer = JSONWriter()
            writer.record(row, table.table)
            problem.members = [("record", writer.take())]
        }
        return problem
    }
}
