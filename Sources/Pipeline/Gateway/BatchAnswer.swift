import FanOutLink
import JSONText
import SyncModel

/// What became of a whole batch: the parts of all its owners, put together in the request's order.
struct BatchAnswer: Sendable {
    /// One owner's part.
    struct Part: Sendable {
        let owner: SyncID
        let outcome: PartOutcome
    }

    /// The device's batch number.
    let batch: Int64?
    /// Part 0's verdict on the whole; `nil` when the results tell.
    let refusal: BatchRefusal?
    /// Whether the batch had been sent before.
    let isRepeat: Bool
    /// What ingest refused, and how many changes there were.
    let summary: BatchSummary
    /// The caller's own part first.
    let parts: [Part]

    /// A batch of which nothing was applied.
    init(batch: Int64?, refusal: BatchRefusal) {
        self.batch = batch
        self.refusal = refusal
        isRepeat = false
        summary = BatchSummary(changeCount: 0)
        parts = []
    }

    /// What becomes of no changes, where there is no number to keep it under.
    static let empty = BatchAnswer(batch: nil, isRepeat: false, summary: BatchSummary(changeCount: 0), parts: [])

    /// A batch whose parts tell.
    init(batch: Int64?, isRepeat: Bool, summary: BatchSummary, parts: [Part]) {
        self.batch = batch
        refusal = nil
        self.isRepeat = isRepeat
        self.summary = summary
        self.parts = parts
    }

    /// The timeStamps of rows that the device holds already and that this answer's pull leaves out (I6).
    ///
    /// They are results that it wrote whole, or on a version that its vector covers. A repeat leaves nothing out.
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

    /// Writes the `batch` object; rows of owners that the caller may not read (any more) stay blank.
    func write(to writer: inout JSONWriter, for caller: Caller) {
        writer.object { writer in
            if let batch {
                writer.name("batch")
                writer.value(batch)
            }
            if let refusal {
                writer.name("refused")
                writer.object { writer in
                    writer.name("code")
                    writer.value(refusal.rawValue)
                    writer.name("message")
                    writer.value(refusal.message)
                }
                return
            }
            // A repeat may come under fewer grants than the batch it repeats.
            let mayRead = parts.map { caller.mayRead($0.owner) }
            writer.name("results")
            writer.array { writer in
                for slot in slots {
                    switch slot {
                    case .refusal(let refusal): writer.refused(refusal.code, refusal.message, row: nil)
                    case .result(let part, let result):
                        writer.result(result, row: mayRead[part] ? parts[part].outcome.rows[result.index] : nil)
                    }
                }
            }
        }
    }

    /// What stands at one position of the request.
    private enum Slot {
        case refusal(Refusal)
        case result(part: Int, ChangeResult)
    }

    /// One for each change.
    private var slots: [Slot] {
        var slots: [(index: Int, slot: Slot)] = []
        slots.reserveCapacity(summary.changeCount)
        for refusal in summary.refusals { slots.append((refusal.index, .refusal(refusal))) }
        for (number, part) in parts.enumerated() {
            for result in part.outcome.results { slots.append((result.index, .result(part: number, result))) }
        }
        return slots.sorted { $0.index < $1.index }.map(\.slot)
    }

    /// Whether every change has its result.
    var isComplete: Bool {
        summary.refusals.count + parts.reduce(0) { $0 + $1.outcome.results.count } == summary.changeCount
    }
}

extension ChangeResult {
    /// The timeStamp and the creator of the row that the change wrote.
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
        case .batchMismatch: "this number was used before, with other content; nothing of the caller's own was applied"
        case .outcomeExpired:
            "this number lies below the newest, and its outcome is no longer kept; nothing of the caller's own was applied"
        case .historyChanged: "the epoch is not the server's: its history was begun anew; nothing was applied"
        }
    }
}

extension JSONWriter {
    fileprivate mutating func result(_ result: ChangeResult, row: [UInt8]?) {
        switch result.status {
        case .applied(let timeStamp, let version, let knowledgeID):
            written("applied", timeStamp, version, knowledgeID)
        case .deleted(let timeStamp, let version, let knowledgeID):
            written("deleted", timeStamp, version, knowledgeID)
        case .conflict:
            object { writer in
                writer.name("status")
                writer.value("conflict" as StaticString)
                writer.name("row")
                if let row { writer.raw(row) } else { writer.null() }
            }
        case .refused(let code, let message): refused(code, message, row: row)
        }
    }

    private mutating func written(
        _ status: StaticString, _ timeStamp: TimeStamp, _ version: Int64, _ knowledgeID: KnowledgeID?
    ) {
        object { writer in
            writer.name("status")
            writer.value(status)
            writer.name("timeStamp")
            writer.value(timeStamp.rawValue)
            writer.name("version")
            writer.value(version)
            writer.name("knowledgeId")
            if let knowledgeID { writer.value(knowledgeID.text) } else { writer.null() }
        }
    }

    fileprivate mutating func refused(_ code: RefusalCode, _ message: String, row: [UInt8]?) {
        object { writer in
            writer.name("status")
            writer.value("refused" as StaticString)
            writer.name("code")
            writer.value(code.rawValue)
            writer.name("message")
            writer.value(message)
            writer.name("row")
            if let row { writer.raw(row) } else { writer.null() }
        }
    }
}
