import FanOutLink
import SyncModel

/// Outcomes.
extension FanOut {
    /// Waits for what became of one part of an upload, at most `within`, then ``FanOutError/pending``.
    ///
    /// Results stay in memory for a while. One that is no longer there is found in the file if the part was the first with
    /// its batch number; else this fails with ``FanOutError/pending`` at once: the device sends the batch again, under the
    /// same number, and gets its outcome.
    package func outcome(of part: PartReference, within limit: Duration) async throws(FanOutError) -> PartOutcome {
        let partition = try served(part.key.owner)
        let place = OutcomeRegistry.Part(upload: part.upload, number: part.part)
        switch await partition.outcomes.answer(for: place, within: limit, clock: clock) {
        case .verdict(.ordered(let results, let summary, let timeStamp)):
            let search = RowSearch(results, of: part.key.owner, after: timeStamp)
            let rows = try await rows(of: search, in: partition)
            return PartOutcome(results: results, summary: summary, rows: rows)
        case .verdict(.refused(let refusal)):
            return PartOutcome(refusal: refusal)
        case .verdict(.repeated):
            guard let first = try await kept(part.batch, part.key, partition) else { throw .pending }
            return try await answer(first, of: part.key.owner, in: partition)
        case .stored:
            guard let first = try await kept(part.batch, part.key, partition), let source = first.source,
                source.upload == part.upload, source.part == part.part
            else { throw .pending }
            return try await answer(first, isRepeat: false, of: part.key.owner, in: partition)
        case .late:
            throw .pending
        case .crowded:
            throw .notReady("too many callers wait for outcomes")
        case .closed:
            throw .closed
        }
    }

    /// The outcome kept for a device's batch with an owner, waiting for one at most `within`; `nil` where none is by then.
    ///
    /// It counts as a repeat, which leaves nothing out of a pull.
    package func keptOutcome(
        of batch: Int64, for key: DeviceKey, within limit: Duration
    ) async throws(FanOutError) -> PartOutcome? {
        let partition = try served(key.owner)
        let find = { () async throws(FanOutError) -> PartOutcome? in
            guard let kept = try await self.kept(batch, key, partition) else { return nil }
            return try await self.answer(kept, of: key.owner, in: partition)
        }
        if limit <= .zero { return try await find() }
        return try await partition.outcomes.outcome(of: batch, for: key, within: limit, clock: clock, find: find)
    }

    /// Makes a search to its end.
    private func rows(
        of search: RowSearch, in partition: ServedPartition
    ) async throws(FanOutError) -> [Int: [UInt8]] {
        if search.isOver { return [:] }
        // Not another file halfway.
        let snapshot = try partition.headSnapshot(of: search.owner)
        guard search.isCovered(by: snapshot.heads) else {
            throw .notReady("the stream was made again and has not come to that result yet")
        }
        var search = search
        while !search.isOver {
            if Task.isCancelled { throw .closed }
            search = try await read(partition, generation: snapshot.generation) { [search] reader in
                var search = search
                try search.step(in: reader)
                return search
            }
        }
        return search.rows
    }

    private func kept(
        _ batch: Int64?, _ key: DeviceKey, _ partition: ServedPartition
    ) async throws(FanOutError) -> KeptOutcome? {
        guard let batch else { return nil }
        return try await read(partition, generation: partition.generation()) {
            try $0.keptOutcome(of: batch, for: key)
        }
    }

    /// A kept outcome with the rows that it shows, as they stand.
    private func answer(
        _ kept: KeptOutcome, isRepeat: Bool = true, of owner: SyncID, in partition: ServedPartition
    ) async throws(FanOutError) -> PartOutcome {
        let outcome = kept.outcome
        let search = RowSearch(outcome.results, of: owner, after: outcome.timeStamp)
        return PartOutcome(
            isRepeat: isRepeat, results: outcome.results, summary: outcome.summary,
            rows: try await rows(of: search, in: partition))
    }
}
