import FanOutLink
import SyncModel

/// Collects the outcome of a batch from the partitions of all its owners.
struct OutcomeCollector<Link: FanOutLink>: Sendable {
    let link: Link
    let clock: GatewayClock

    /// Waits for the outcome of an upload.
    ///
    /// - Parameter rows: collects the rows to show; `nil`: none.
    func outcome(
        of upload: UploadReference, device: Device, batch: Int64?, rows: ShownRows?, until deadline: Duration
    ) async throws(FanOutError) -> BatchOutcome {
        let window = rows?.window(for: device.caller)
        let own = try await outcome(of: upload, part: 0, owner: device.caller, device, batch, window, until: deadline)
        if let refusal = own.refusal { return BatchOutcome(batch: batch, refusal: refusal) }
        if own.isRepeat, let batch {
            guard let outcome = try await kept(batch, device: device, own: own, rows, until: deadline) else {
                throw .pending
            }
            return outcome
        }
        let whole = try await complete(own, batch, device, rows, isRepeat: own.isRepeat) {
            (index, owner, window) throws(FanOutError) in
            try await outcome(of: upload, part: index + 1, owner: owner, device, batch, window, until: deadline)
        }
        guard let whole else { throw .pending }
        return whole
    }

    /// The kept outcome of a device's batch; `nil` if the caller's own partition has none until the deadline.
    ///
    /// - Parameter rows: collects the rows to show; `nil`: none.
    func keptOutcome(
        of batch: Int64, device: Device, rows: ShownRows?, until deadline: Duration
    ) async throws(FanOutError) -> BatchOutcome? {
        let window = rows?.window(for: device.caller)
        guard let own = try await keptPart(batch, of: device.caller, device, window, until: deadline) else {
            return nil
        }
        guard let outcome = try await kept(batch, device: device, own: own, rows, until: deadline) else {
            throw .pending
        }
        return outcome
    }

    /// The first outcome of a batch whose own part is known; `nil` if another owner's part is not known in time.
    ///
    /// The other parts are found by batch number, because a repeat under other grants may number its parts differently.
    private func kept(
        _ batch: Int64, device: Device, own: PartOutcome, _ rows: ShownRows?, until deadline: Duration
    ) async throws(FanOutError) -> BatchOutcome? {
        try await complete(own, batch, device, rows, isRepeat: true) { (_, owner, window) throws(FanOutError) in
            try await keptPart(batch, of: owner, device, window, until: deadline)
        }
    }

    private func outcome(
        of upload: UploadReference, part: Int, owner: SyncID, _ device: Device, _ batch: Int64?,
        _ rows: RowWindow?, until deadline: Duration
    ) async throws(FanOutError) -> PartOutcome {
        let key = DeviceKey(owner: owner, device: device)
        return try await link.outcome(
            of: PartReference(upload: upload, part: part, key: key, batch: batch), rows: rows,
            within: clock.remaining(until: deadline))
    }

    private func keptPart(
        _ batch: Int64, of owner: SyncID, _ device: Device, _ rows: RowWindow?, until deadline: Duration
    ) async throws(FanOutError) -> PartOutcome? {
        try await link.keptOutcome(
            of: batch, for: DeviceKey(owner: owner, device: device), rows: rows,
            within: clock.remaining(until: deadline))
    }

    /// Adds the parts of other owners to the caller's own; `nil` when one of them is not known.
    private func complete(
        _ own: PartOutcome, _ batch: Int64?, _ device: Device, _ rows: ShownRows?, isRepeat: Bool,
        other: (Int, SyncID, RowWindow?) async throws(FanOutError) -> PartOutcome?
    ) async throws(FanOutError) -> BatchOutcome? {
        let summary = own.summary ?? BatchSummary(changeCount: own.results.count)
        var outcome = BatchOutcome(batch: batch, isRepeat: isRepeat, summary: summary, rows: rows)
        outcome.add(BatchOutcome.Part(owner: device.caller, outcome: own))
        for (index, owner) in summary.otherOwners.enumerated() {
            guard let part = try await other(index, owner, outcome.rows?.window(for: owner)) else { return nil }
            outcome.add(BatchOutcome.Part(owner: owner, outcome: part))
        }
        guard outcome.isComplete else {
            throw .notReady("the parts of the batch have no result for some of its changes")
        }
        return outcome
    }
}
