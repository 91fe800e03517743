import FanOutLink
import JSONText
import SyncModel

/// The outcome of a whole batch: the parts of all its owners, in the order of the request.
struct BatchOutcome: Sendable {
    /// One owner's part.
    struct Part: Sendable {
        let owner: SyncID
        let outcome: PartOutcome
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
    var parts: [Part] = []

    /// A batch without a number and without changes, which is not appended.
    static let empty = BatchOutcome(batch: nil)

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

    /// Writes the `batch` object, without rows of owners that the caller may not read.
    func write(to writer: inout JSONWriter, for caller: Caller) {
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
            // A repeat can have fewer grants than the first upload.
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

    /// Whether every change has its result.
    var isComplete: Bool {
        summary.refusals.count + parts.reduce(0) { $0 + $1.outcome.results.count } == summary.changeCount
    }
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
    fileprivate mutating func result(_ result: ChangeResult, row: [UInt8]?) {
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
        case .refused(let code, let message): refused(code, message, row: row)
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

    fileprivate mutating func refused(_ code: RefusalCode, _ message: String, row: [UInt8]?) {
        object { writer in
            writer.member("status", "refused" as StaticString)
            writer.member("code", code.rawValue)
            writer.member("message", message)
            writer.row(row)
        }
    }

    private mutating func row(_ row: [UInt8]?) {
        name("row")
        if let row { raw(row) } else { null() }
    }
}
