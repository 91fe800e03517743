import FanOutLink
import SyncModel

/// Outcomes.
extension FanOut {
    /// Waits for the outcome of one part of an upload at most `within`, then throws ``FanOutError/pending``.
    ///
    /// A result that is no longer in memory is read from the file if the part was the first with its batch number.
    /// Otherwise this throws ``FanOutError/pending`` immediately: the device sends the batch again under the same
    /// number, and gets its outcome.
    package func outcome(
        of part: PartReference, rows window: RowWindow?, within limit: Duration
    ) async throws(FanOutError) -> PartOutcome {
        let partition = try served(part.key.owner)
        let awaited = OutcomeRegistry.Part(upload: part.upload, number: part.part)
        switch await partition.outcomes.answer(for: awaited, within: limit, clock: clock) {
        case .decided(.ordered(let results, let summary, let timeStamp)):
            let rows = try await rows(of: results, after: timeStamp, window, part.key.owner, partition)
            return PartOutcome(
                results: results, summary: summary, rows: rows,
                head: head(of: part.key.owner, in: partition, covering: results))
        case .decided(.refused(let refusal)):
            return PartOutcome(refusal: refusal)
        case .decided(.repeated):
            guard let first = try await kept(part.batch, part.key, partition) else { throw .pending }
            return try await answer(first, window, of: part.key.owner, in: partition)
        case .stored:
            guard let first = try await kept(part.batch, part.key, partition), let source = first.source,
                source.upload == part.upload, source.part == part.part
            else { throw .pending }
            return try await answer(first, window, isRepeat: false, of: part.key.owner, in: partition)
        case .late:
            throw .pending
        case .crowded:
            throw .notReady("too many callers wait for outcomes")
        case .closed:
            throw .closed
        }
    }

    /// The stored outcome of a device's batch with an owner.
    ///
    /// Waits for one at most `within`, then returns `nil`.
    ///
    /// It is a repeat, which leaves no row out of a pull.
    package func keptOutcome(
        of batch: Int64, for key: DeviceKey, rows window: RowWindow?, within limit: Duration
    ) async throws(FanOutError) -> PartOutcome? {
        let partition = try served(key.owner)
        let find = { () async throws(FanOutError) -> PartOutcome? in
            guard let kept = try await self.kept(batch, key, partition) else { return nil }
            return try await self.answer(kept, window, of: key.owner, in: partition)
        }
        if limit <= .zero { return try await find() }
        return try await partition.outcomes.outcome(of: batch, for: key, within: limit, clock: clock, find: find)
    }

    /// The current rows of an outcome's conflicts and refusals in a window.
    private func rows(
        of results: [ChangeResult], after timeStamp: TimeStamp, _ window: RowWindow?, _ owner: SyncID,
        _ partition: ServedPartition
    ) async throws(FanOutError) -> [Int: [UInt8]] {
        guard let window else { return [:] }
        var search = RowSearch(results, of: owner, after: timeStamp, in: window)
        if search.isOver { return [:] }
        // All steps read the same file.
        let snapshot = try partition.headSnapshot(of: search.owner)
        guard search.isCovered(by: snapshot.heads) else {
            throw .notReady("the rebuilt stream has not reached that result yet")
        }
        while !search.isOver {
            if Task.isCancelled { throw .closed }
            search = try await read(partition, of: owner, generation: snapshot.generation) { [search] reader in
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
        return try await read(partition, of: key.owner, generation: partition.generation()) {
            try $0.keptOutcome(of: batch, for: key)
        }
    }

    /// A stored outcome with the current rows of its conflicts and refusals.
    private func answer(
        _ kept: KeptOutcome, _ window: RowWindow?, isRepeat: Bool = true, of owner: SyncID,
        in partition: ServedPartition
    ) async throws(FanOutError) -> PartOutcome {
        let outcome = kept.outcome
        let rows = try await rows(of: outcome.results, after: outcome.timeStamp, window, owner, partition)
        return PartOutcome(
            isRepeat: isRepeat, results: outcome.results, summary: outcome.summary, rows: rows,
            head: head(of: owner, in: partition, covering: outcome.results))
    }

    /// The newest timeStamp of an owner's stream, after the reads of results that it must cover.
    ///
    /// A transaction is in the file a moment before its heads are published.
    private func head(
        of owner: SyncID, in partition: ServedPartition, covering results: [ChangeResult]
    ) -> TimeStamp {
        results.reduce(partition.committedHeads(of: owner)?.head ?? .zero) { max($0, $1.status.timeStamp ?? .zero) }
    }
}
