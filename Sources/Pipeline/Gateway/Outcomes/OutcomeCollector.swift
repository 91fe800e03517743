import FanOutLink
import SyncModel

/// Collects the outcome of a batch from the partitions of all its owners.
struct OutcomeCollector<Link: FanOutLink>: Sendable {
    let link: Link
    let clock: GatewayClock

    /// Waits for the outcome of an upload.
    func outcome(
        of upload: UploadReference, device: Device, batch: Int64?, until deadline: Duration
    ) async throws(FanOutError) -> BatchOutcome {
        let own = try await outcome(of: upload, part: 0, owner: device.caller, device, batch, until: deadline)
        if let refusal = own.refusal { return BatchOutcome(batch: batch, refusal: refusal) }
        if own.isRepeat, let batch {
            guard let outcome = try await kept(batch, device: device, own: own, until: deadline) else { throw .pending }
            return outcome
        }
        let summary = own.summary ?? BatchSummary(changeCount: own.results.count)
        var parts = [BatchOutcome.Part(owner: device.caller, outcome: own)]
        for (index, owner) in summary.otherOwners.enumerated() {
            let outcome = try await outcome(
                of: upload, part: index + 1, owner: owner, device, batch, until: deadline)
            parts.append(BatchOutcome.Part(owner: owner, outcome: outcome))
        }
        return try complete(BatchOutcome(batch: batch, isRepeat: own.isRepeat, summary: summary, parts: parts))
    }

    /// The kept outcome of a device's batch; `nil` if the caller's own partition has none until the deadline.
    func keptOutcome(
        of batch: Int64, device: Device, until deadline: Duration
    ) async throws(FanOutError) -> BatchOutcome? {
        guard let own = try await keptPart(batch, of: device.caller, device, until: deadline) else { return nil }
        guard let outcome = try await kept(batch, device: device, own: own, until: deadline) else { throw .pending }
        return outcome
    }

    /// The first outcome of a batch whose own part is known; `nil` if another owner's part is not known in time.
    ///
    /// The other parts are found by batch number, because a repeat under other grants may number its parts differently.
    private func kept(
        _ batch: Int64, device: Device, own: PartOutcome, until deadline: Duration
    ) async throws(FanOutError) -> BatchOutcome? {
        let summary = own.summary ?? BatchSummary(changeCount: own.results.count)
        var parts = [BatchOutcome.Part(owner: device.caller, outcome: own)]
        for owner in summary.otherOwners {
            guard let outcome = try await keptPart(batch, of: owner, device, until: deadline) else { return nil }
            parts.append(BatchOutcome.Part(owner: owner, outcome: outcome))
        }
        return try complete(BatchOutcome(batch: batch, isRepeat: true, summary: summary, parts: parts))
    }

    private func outcome(
        of upload: UploadReference, part: Int, owner: SyncID, _ device: Device, _ batch: Int64?,
        until deadline: Duration
    ) async throws(FanOutError) -> PartOutcome {
        let key = DeviceKey(owner: owner, device: device)
        return try await link.outcome(
            of: PartReference(upload: upload, part: part, key: key, batch: batch),
            within: clock.remaining(until: deadline))
    }

    private func keptPart(
        _ batch: Int64, of owner: SyncID, _ device: Device, until deadline: Duration
    ) async throws(FanOutError) -> PartOutcome? {
        try await link.keptOutcome(
            of: batch, for: DeviceKey(owner: owner, device: device), within: clock.remaining(until: deadline))
    }

    /// A response has a result for every change.
    private func complete(_ outcome: BatchOutcome) throws(FanOutError) -> BatchOutcome {
        guard outcome.isComplete else {
            throw .notReady("the parts of the batch have no result for some of its changes")
        }
        return outcome
    }
}
