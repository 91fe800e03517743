import FanOutLink
import JSONText
import SyncModel

/// The outcome of a whole batch: the parts of all its owners, in the order of the request.
struct BatchOutcome: Sendable {
    /// One owner's part.
    struct Part: Sendable {
        let owner: SyncID
        var outcome: PartOutcome
        /// ``PartOutcome/showing``.
        let showing: [Int: Int]
        /// Whether the caller may read the owner's rows; a repeat can have fewer grants than the first upload.
        var mayRead = true

        init(owner: SyncID, outcome: PartOutcome) {
            self.owner = owner
            self.outcome = outcome
            showing = outcome.showing
        }
    }

    /// The device's batch number.
    let batch: Int64?
    /// Part 0's refusal of the whole batch; `nil` if the changes have results of their own.
    var refusal: BatchRefusal?
    /// Whether the batch had been sent before.
    var isRepeat = false
    /// The number of changes, and those that ingest refused.
    var summary = BatchSummary(changeCount: 0)
    /// The caller's own part first.
    private(set) var parts: [Part] = []
    /// The rows of conflicts and refusals; `nil` when the response shows no outcome.
    private(set) var rows: ShownRows?

    /// A batch without a number and without changes, which is not appended.
    static let empty = BatchOutcome(batch: nil)

    mutating func add(_ part: Part) {
        var part = part
        rows?.take(from: &part)
        parts.append(part)
    }

    /// The timeStamps of rows that the device holds already, which the pull of the same response leaves out (I6).
    ///
    /// The device wrote these rows whole, or on a version that its vector covers. A repeat leaves nothing out.
    func held(by knowledge: KnowledgeVector) -> [SyncID: Set<TimeStamp>] {
        guard !isRepeat, refusal == nil else { return [:] }
        var held: [SyncID: Set<TimeStamp>] = [:]
        for part in parts where !part.outcome.isRepeat {
            let known = knowledge[part.owner]
            for result in part.outcome.results {
                guard let from = result.heldFrom, let (timeStamp, creator) = result.row, known[creator] >= from else {
                    continue
                }
                held[part.owner, default: []].insert(timeStamp)
            }
        }
        return held
    }

    /// The heads of the streams that the parts are from: the pull of the same response must not be from older ones (I7).
    var heads: [SyncID: TimeStamp] {
        Dictionary(parts.lazy.map { ($0.owner, $0.outcome.head) }, uniquingKeysWith: max)
    }

    /// Takes over the rows of the same outcome, which was read again with them.
    mutating func show(rowsOf other: BatchOutcome) {
        guard other.parts.map(\.owner) == parts.map(\.owner) else { return }
        rows = other.rows
        for (index, part) in other.parts.enumerated() {
            parts[index].mayRead = part.mayRead
            parts[index].outcome.head = max(parts[index].outcome.head, part.outcome.head)
        }
    }

    /// The size of the rows that are shown.
    var rowBytes: Int { rows?.rows.values.reduce(0) { $0 + $1.count } ?? 0 }

    /// How many rows conflicts and refusals show, here or not.
    var shownRowCount: Int { parts.reduce(0) { $0 + Set($1.showing.values).count } }

    /// Whether there are rows of conflicts or refusals that are not here.
    var leavesOutRows: Bool { rows?.end != nil }

    /// What a response has of a batch.
    enum Content: Sendable {
        /// The result of each change, with the first rows.
        case results
        /// Further rows alone.
        case rows
    }

    /// Writes the `batch` object.
    func write(_ content: Content = .results, to writer: inout JSONWriter) {
        writer.object { writer in
            if let batch { writer.member("batch", batch) }
            if let refusal {
                writer.name("refused")
                writer.object { writer in
                    writer.member("code", refusal.rawValue)
                    writer.member("message", refusal.message)
                }
                return
            }
            switch content {
            case .results: writeResults(to: &writer)
            case .rows: writeRows(to: &writer)
            }
            // The outcome of a batch without a number cannot be requested again.
            if batch != nil, let rowsFrom = rows?.end { writer.member("rowsFrom", Int64(rowsFrom)) }
        }
    }

    private func writeResults(to writer: inout JSONWriter) {
        writer.name("results")
        writer.array { writer in
            for slot in slots {
                switch slot {
                case .refusal(let refusal): writer.refused(refusal.code, refusal.message, .none)
                case .result(let part, let result): writer.result(result, row(of: result, parts[part]))
                }
            }
        }
    }

    private func writeRows(to writer: inout JSONWriter) {
        writer.name("rows")
        writer.array { writer in
            for (index, row) in (rows?.rows ?? [:]).sorted(by: { $0.key < $1.key }) {
                writer.object { writer in
                    writer.member("result", Int64(index))
                    writer.name("row")
                    writer.raw(row)
                }
            }
        }
    }

    private func row(of result: ChangeResult, _ part: Part) -> ShownRow {
        guard part.mayRead, let first = part.showing[result.index] else { return .none }
        if first != result.index { return .sameAs(first) }
        return rows?.rows[first].map(ShownRow.row) ?? .leftOut
    }

    /// The result of one change.
    private enum Slot {
        case refusal(Refusal)
        case result(part: Int, ChangeResult)
    }

    /// In the order of the request's changes.
    private var slots: [Slot] {
        var slots: [(index: Int, slot: Slot)] = []
        slots.reserveCapacity(summary.changeCount)
        for refusal in summary.refusals { slots.append((refusal.index, .refusal(refusal))) }
        for (number, part) in parts.enumerated() {
            for result in part.outcome.results { slots.append((result.index, .result(part: number, result))) }
        }
        return slots.sorted { $0.index < $1.index }.map(\.slot)
    }

    /// The results for a face, whose changes are all of one owner.
    ///
    /// - Parameters:
    ///   - device: the one that sent the changes.
    ///   - schema: the one in which the face shows rows.
    ///   - row: reads a row that exceeded what an outcome shows, in a stream that has reached the part's head.
    func forFace(
        of device: Device, _ schema: Schema, row: (_ table: Int, RowID, _ head: TimeStamp) async throws -> FaceRow?
    ) async throws -> FaceOutcome {
        let reader = FaceDevice(device)
        var results: [FaceOutcome.Result] = []
        results.reserveCapacity(summary.changeCount)
        for slot in slots {
            switch slot {
            case .refusal(let refusal): results.append(.init(status: .refused(refusal.code, refusal.message)))
            case .result(let part, let result):
                var shown: FaceRow?
                switch self.row(of: result, parts[part]) {
                case .none: break
                case .row(let json):
                    shown = try FaceRow(ofResult: json, table: result.table, in: schema, for: reader)
                case .sameAs(let index): shown = results[index].row
                case .leftOut: shown = try await row(result.table, result.id, parts[part].outcome.head)
                }
                results.append(.init(status: FaceOutcome.Status(result.status), row: shown))
            }
        }
        return FaceOutcome(results: results, head: parts.first?.outcome.head ?? .zero)
    }

    /// Whether every change has its result.
    var isComplete: Bool {
        summary.refusals.count + parts.reduce(0) { $0 + $1.outcome.results.count } == summary.changeCount
    }
}

/// The row of a conflict or refusal in a response.
private enum ShownRow {
    /// The batch left no row, or the caller may not read it.
    case none
    case row([UInt8])
    /// The row of an earlier result.
    case sameAs(Int)
    /// The row exceeds the response's size.
    case leftOut
}

extension ChangeResult {
    /// The timeStamp and creator of the row that the change wrote.
    fileprivate var row: (TimeStamp, KnowledgeID)? {
        switch status {
        case .applied(let timeStamp, _, let knowledgeID?): (timeStamp, knowledgeID)
        case .deleted(let timeStamp, _, let knowledgeID): (timeStamp, knowledgeID)
        case .applied, .conflict, .refused: nil
        }
    }
}

extension BatchRefusal {
    /// What happened, for a developer.
    var message: String {
        switch self {
        case .batchMismatch:
            "this batch number was used before with other content; nothing of the caller's own part was applied"
        case .outcomeExpired:
            "this batch number is below the newest one, and its outcome is no longer kept; nothing of the caller's own part was applied"
        case .historyChanged: "the epoch differs from the server's, whose history was recreated; nothing was applied"
        }
    }
}

extension JSONWriter {
    fileprivate mutating func result(_ result: ChangeResult, _ row: ShownRow) {
        switch result.status {
        case .applied(let timeStamp, let version, let knowledgeID):
            written("applied", timeStamp, version, knowledgeID)
        case .deleted(let timeStamp, let version, let knowledgeID):
            written("deleted", timeStamp, version, knowledgeID)
        case .conflict:
            object { writer in
                writer.member("status", "conflict" as StaticString)
                writer.row(row)
            }
        case .refused(let code, let message): refused(code, message, row)
        }
    }

    private mutating func written(
        _ status: StaticString, _ timeStamp: TimeStamp, _ version: Int64, _ knowledgeID: KnowledgeID?
    ) {
        object { writer in
            writer.member("status", status)
            writer.member("timeStamp", timeStamp.rawValue)
            writer.member("version", version)
            writer.name("knowledgeId")
            if let knowledgeID { writer.value(knowledgeID.text) } else { writer.null() }
        }
    }

    fileprivate mutating func refused(_ code: RefusalCode, _ message: String, _ row: ShownRow) {
        object { writer in
            writer.member("status", "refused" as StaticString)
            writer.member("code", code.rawValue)
            writer.member("message", message)
            writer.row(row)
        }
    }

    private mutating func row(_ row: ShownRow) {
        switch row {
        case .none:
            name("row")
            null()
        case .row(let json):
            name("row")
            raw(json)
        case .sameAs(let index): member("sameRowAs", Int64(index))
        case .leftOut: break
        }
    }
}
