import DeviceModel
import HTTP
import SyncModel

/// Checks of single answers.
extension SimulatedDevice {
    /// A device that sends what it should is answered with one of these statuses; one that is to come back is told when.
    func checkStatus(_ response: HTTPResponse, _ path: String) {
        guard [200, 202, 404, 413, 429, 503, 504].contains(response.status) else {
            return world.fail(.limits, "\(name): \(path) is answered with \(response.status)")
        }
        guard [429, 503].contains(response.status) else { return }
        let after = response.headers.first { $0.name.lowercased() == "retry-after" }.flatMap { Int($0.value) }
        if after ?? 0 < 1 {
            world.fail(.limits, "\(name): \(path) is answered with \(response.status) and no Retry-After")
        }
    }

    /// Checks that the page of an answer, if it is the last, has all that a batch wrote.
    func checkCovers(_ batch: Int64?, _ answer: Answer) {
        guard let batch, !answer.hasMore, world.violation == nil else { return }
        for owner in granted.sorted() {
            let part = OrderingModel.PartName(key: DeviceKey(owner: owner, device: device), batch: batch)
            guard let newest = world.audit.model.outcomes[part]?.newest else { continue }
            if memory.copy.head(of: owner) < newest.rawValue {
                return world.fail(
                    .drainedEqual,
                    "\(name) is drained at \(memory.copy.head(of: owner)) of \(owner), but batch \(batch) wrote \(newest)"
                )
            }
        }
    }

    /// Checks that an atomic batch stored either everything of an owner or nothing.
    func checkAtomic(_ results: [Answer.Result], _ batch: Batch) {
        guard batch.isAtomic else { return }
        for owner in granted.sorted() {
            // A change that an earlier batch applied keeps its result; the model of ordering knows which.
            let mine = zip(results, batch.edits).filter { $1.owner == owner && $1.changeID == nil }.map(\.0.status)
            let stored = mine.count { $0 == "applied" || $0 == "deleted" }
            if stored > 0, stored < mine.count {
                world.fail(.rules, "\(name): an atomic batch is \(mine) for \(owner)")
            }
        }
    }

    /// Checks that a long poll that ended early has something to say.
    func checkHasNews(_ answer: Answer, since vector: [SyncID: [String: Int64]]) {
        let hasRisen = answer.knowledge.contains { entry in
            let known = vector[SyncID(unchecked: entry.owner)] ?? [:]
            return entry.timeStamp > known[entry.knowledgeID] ?? known["*"] ?? 0
        }
        if answer.rows.isEmpty, !answer.hasMore, !hasRisen, answer.revoked.isEmpty, answer.resync.isEmpty {
            world.fail(.progress, "\(name): a long poll ended before its time with nothing new")
        }
    }

    /// Checks the rows that are shown with conflicts, and requests those that were left out.
    func readRows(_ answer: Answer, of batch: Batch?) async {
        guard let batch, answer.results.count == batch.edits.count, world.violation == nil else { return }
        var shown = ShownRows(batch.edits, batch.number, of: device, readable: granted, world)
        shown.check(answer.results, rowsFrom: answer.rowsFrom)
        while let next = shown.next, let number = batch.number, world.violation == nil {
            let query = [("knowledgeId", name), ("rowsFrom", "\(next)")]
            guard let response = await send(.get, "/v1/batches/\(number)", query: query), response.status == 200,
                let page = read(response)
            else { return }
            // Meanwhile its number may have been used again, with other content.
            if page.refusal != nil { return }
            shown.check(page.shownRows, from: next, rowsFrom: page.rowsFrom)
        }
    }
}
