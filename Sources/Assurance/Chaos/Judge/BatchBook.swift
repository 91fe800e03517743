import DeviceModel
import SyncModel

/// The result of a change, as a device or `ordered` has it.
enum ChangeOutcome: Sendable, Hashable, CustomStringConvertible {
    case applied(timeStamp: Int64, version: Int64)
    case deleted(timeStamp: Int64, version: Int64)
    case conflict
    case refused(String)

    /// The timeStamp that the change took; zero where it wrote nothing.
    var timeStamp: Int64 {
        switch self {
        case .applied(let timeStamp, _), .deleted(let timeStamp, _): timeStamp
        case .conflict, .refused: 0
        }
    }

    /// `nil` for a status that the contract does not have.
    init?(_ result: Answer.Result) {
        switch result.status {
        case "applied": self = .applied(timeStamp: result.timeStamp, version: result.version)
        case "deleted": self = .deleted(timeStamp: result.timeStamp, version: result.version)
        case "conflict": self = .conflict
        case "refused": self = .refused(result.code)
        default: return nil
        }
    }

    init(_ status: ChangeResult.Status) {
        switch status {
        case .applied(let timeStamp, let version, _):
            self = .applied(timeStamp: timeStamp.rawValue, version: version)
        case .deleted(let timeStamp, let version, _):
            self = .deleted(timeStamp: timeStamp.rawValue, version: version)
        case .conflict: self = .conflict
        case .refused(let code, _): self = .refused(code.rawValue)
        }
    }

    var description: String {
        switch self {
        case .applied(let timeStamp, let version): "applied \(timeStamp) v\(version)"
        case .deleted(let timeStamp, let version): "deleted \(timeStamp) v\(version)"
        case .conflict: "conflict"
        case .refused(let code): "refused \(code)"
        }
    }
}

/// What a device sent and was answered, batch by batch; it judges the answers of one device.
struct BatchBook: Sendable {
    struct Entry: Sendable {
        let owners: [SyncID]
        let isDelete: [Bool]
        /// How often the batch was sent.
        var sends = 0
        /// How many of these were acknowledged: each of them is in the log.
        var acknowledgements = 0
        /// The first outcome; `nil` before it is known.
        var outcome: [ChangeOutcome]?
    }

    let owner: String
    let device: String
    /// Whether the device was revoked while it wrote: its last batch may have no outcome.
    var isRevoked = false
    private(set) var entries: [Int64: Entry] = [:]
    /// By owner, the newest timeStamp of this device's changes.
    private var newest: [SyncID: Int64] = [:]

    init(owner: String, device: String) {
        self.owner = owner
        self.device = device
    }

    func name(_ number: Int64) -> BatchName { BatchName(owner: owner, device: device, number: number) }

    mutating func begin(_ number: Int64, _ edits: [Edit]) {
        entries[number] = Entry(owners: edits.map(\.owner), isDelete: edits.map(\.isDelete))
    }

    mutating func sent(_ number: Int64) { entries[number]?.sends += 1 }

    mutating func acknowledged(_ number: Int64) { entries[number]?.acknowledgements += 1 }

    /// Takes the outcome that an answer holds: the first, or one that must equal it.
    mutating func take(_ answer: Answer, of number: Int64) -> [Finding] {
        func wrong(_ text: String) -> [Finding] {
            [Finding(kind: .wrongOutcome, text: "\(name(number)): \(text)", batch: name(number))]
        }
        guard var entry = entries[number] else { return wrong("it was never sent") }
        if let refusal = answer.refusal { return wrong("it is refused as a whole: \(refusal)") }
        let found = answer.results.compactMap(ChangeOutcome.init)
        guard found.count == entry.owners.count, answer.results.count == found.count else {
            return wrong("\(entry.owners.count) changes have \(answer.results.count) results")
        }
        if let first = entry.outcome {
            guard first != found, let index = first.indices.first(where: { first[$0] != found[$0] }) else { return [] }
            return wrong("change \(index) was \(first[index]), and is \(found[index]) when the batch is repeated")
        }
        entry.outcome = found
        entries[number] = entry
        return checkOrder(of: entry, number)
    }

    /// Each change that wrote a row took a later timeStamp than all before it of the same owner.
    private mutating func checkOrder(of entry: Entry, _ number: Int64) -> [Finding] {
        var findings: [Finding] = []
        for (index, outcome) in (entry.outcome ?? []).enumerated() where outcome.timeStamp > 0 {
            let owner = entry.owners[index]
            let before = newest[owner] ?? 0
            if outcome.timeStamp > before {
                newest[owner] = outcome.timeStamp
            } else if !entry.isDelete[index] {
                // Deleting a tombstone writes nothing and shows its timeStamp.
                findings.append(
                    Finding(
                        kind: .order,
                        text:
                            "\(name(number)): change \(index) of \(owner) got the timeStamp \(outcome.timeStamp) after "
                            + "\(before)",
                        batch: name(number)))
            }
        }
        return findings
    }
}
