import SyncModel

/// Compares what devices were answered with `changes` and `ordered`: each acknowledged batch was applied exactly once.
struct OutcomeJudge {
    private struct BatchKey: Hashable {
        let device: Device
        let number: Int64
    }

    private struct PartKey: Hashable {
        let batch: BatchKey
        let owner: SyncID
    }

    /// What `ordered` has of a batch.
    private struct Found {
        var results = 0
        /// The first difference from the device's outcome.
        var difference: String?
    }

    private let books: [Device: BatchBook]
    /// How many records of `uploads` each batch has.
    private var records: [BatchKey: Int] = [:]
    /// The offset in `changes` of the part that was applied.
    private var applied: [PartKey: Int64] = [:]
    private var found: [BatchKey: Found] = [:]
    private(set) var findings: [Finding] = []
    /// The changes with a result.
    private(set) var changes = 0

    init(_ books: [BatchBook]) {
        let pairs = books.map { book in
            let caller = SyncID(unchecked: book.owner)
            return (Device(caller: caller, knowledgeID: KnowledgeID(unchecked: book.device)), book)
        }
        self.books = Dictionary(pairs, uniquingKeysWith: { first, _ in first })
    }

    /// Takes a part of `changes`, each once.
    mutating func take(_ part: ChangePart) {
        guard part.part == 0, let number = part.batch, books[part.device] != nil else { return }
        records[BatchKey(device: part.device, number: number), default: 0] += 1
    }

    /// Takes a piece of a result, each once.
    mutating func take(_ piece: OrderedPiece, _ partition: Int) {
        guard let book = books[piece.device], let number = piece.batch else { return }
        let batch = BatchKey(device: piece.device, number: number)
        let name = book.name(number)
        switch piece.verdict {
        case .repeated: return
        case .refused(let refusal):
            return add(.wrongOutcome, "\(name) is refused in partition \(partition) of ordered: \(refusal)", name)
        case .ordered: break
        }
        let part = PartKey(batch: batch, owner: piece.owner)
        if let first = applied[part], first != piece.changesOffset {
            return add(
                .doubled,
                "\(name) is applied to \(piece.owner) twice: at the offsets \(first) and \(piece.changesOffset) of "
                    + "partition \(partition) of changes", name)
        }
        applied[part] = piece.changesOffset
        guard let entry = book.entries[number] else {
            return add(.wrongOutcome, "\(name) is in ordered, and was never sent", name)
        }
        var found = found[batch] ?? Found()
        let results =
            piece.results.map { ($0.index, ChangeOutcome($0.status)) }
            + (piece.summary?.refusals ?? []).map { ($0.index, ChangeOutcome.refused($0.code.rawValue)) }
        for (index, result) in results {
            found.results += 1
            changes += 1
            guard let outcome = entry.outcome, found.difference == nil else { continue }
            guard outcome.indices.contains(index) else {
                found.difference = "change \(index) does not exist"
                continue
            }
            if outcome[index] != result {
                found.difference = "the device got \(outcome[index]) for change \(index), and ordered has \(result)"
            }
        }
        self.found[batch] = found
    }

    /// Judges all batches, after all records.
    mutating func finish() {
        for (device, book) in books.sorted(by: { ($0.value.owner, $0.value.device) < ($1.value.owner, $1.value.device) }
        ) {
            for (number, entry) in book.entries.sorted(by: { $0.key < $1.key }) {
                judge(
                    book.name(number), entry, BatchKey(device: device, number: number), isRevoked: book.isRevoked)
            }
        }
    }

    private mutating func judge(
        _ name: BatchName, _ entry: BatchBook.Entry, _ batch: BatchKey, isRevoked: Bool
    ) {
        let count = records[batch] ?? 0
        if count < entry.acknowledgements {
            add(
                .lost, "\(name) was acknowledged \(entry.acknowledgements) times and is \(count) times in changes", name
            )
        }
        if count > entry.sends {
            add(.doubled, "\(name) was sent \(entry.sends) times and is \(count) times in changes", name)
        }
        let found = found[batch] ?? Found()
        if let difference = found.difference { add(.wrongOutcome, "\(name): \(difference)", name) }
        guard entry.acknowledgements > 0 || entry.outcome != nil else { return }
        let isUnsettled = entry.outcome == nil && count >= entry.acknowledgements && !isRevoked
        if found.results < entry.owners.count, !isUnsettled {
            add(
                .lost,
                "\(name) was acknowledged, and ordered has \(found.results) results of \(entry.owners.count) changes",
                name)
        } else if found.results > entry.owners.count {
            add(.doubled, "\(name) has \(found.results) results in ordered, and \(entry.owners.count) changes", name)
        }
        if entry.outcome == nil, !isRevoked {
            add(
                .notHealed,
                "\(name) was acknowledged, and its device got no outcome; changes has it \(count) times, ordered has "
                    + "\(found.results) results of \(entry.owners.count) changes", name)
        }
    }

    private mutating func add(_ kind: Finding.Kind, _ text: String, _ batch: BatchName) {
        findings.append(Finding(kind: kind, text: text, batch: batch))
    }
}
