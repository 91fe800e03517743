import FanOutLink
import SyncModel

/// Puts together what became of a batch from the fan-outs of its owners.
struct OutcomeCollector<Link: FanOutLink>: Sendable {
    let link: Link
    let time: GatewayDeadline

    /// Waits for the outcome of an upload.
    func outcome(
        of upload: UploadReference, device: Device, batch: Int64?, until deadline: Duration
    ) async throws(FanOutError) -> BatchAnswer {
        let key = DeviceKey(owner: device.caller, device: device)
        let own = try await link.outcome(
            of: PartReference(upload: upload, part: 0, key: key, batch: batch), within: time.remaining(until: deadline))
        if let refusal = own.refusal { return BatchAnswer(batch: batch, refusal: refusal) }
        if own.isRepeat, let batch {
            guard let answer = try await kept(batch, device: device, own: own, until: deadline) else { throw .pending }
            return answer
        }
        let summary = own.summary ?? BatchSummary(changeCount: own.results.count)
        var parts = [BatchAnswer.Part(owner: device.caller, outcome: own)]
        for (index, owner) in summary.otherOwners.enumerated() {
            let part = PartReference(
                upload: upload, part: index + 1, key: DeviceKey(owner: owner, device: device), batch: batch)
            let outcome = try await link.outcome(of: part, within: time.remaining(until: deadline))
            parts.append(BatchAnswer.Part(owner: owner, outcome: outcome))
        }
        return try complete(BatchAnswer(batch: batch, isRepeat: own.isRepeat, summary: summary, parts: parts))
    }

    /// The outcome kept of a device's batch, `nil` where the caller's own partition has none by then.
    func keptOutcome(
        of batch: Int64, device: Device, until deadline: Duration
    ) async throws(FanOutError) -> BatchAnswer? {
        let key = DeviceKey(owner: device.caller, device: device)
        let wait = time.remaining(until: deadline)
        guard let own = try await link.keptOutcome(of: batch, for: key, within: wait) else { return nil }
        guard let answer = try await kept(batch, device: device, own: own, until: deadline) else { throw .pending }
        return answer
    }

    /// The first outcome of a batch whose own part is known; `nil` when another owner's has not come in time.
    ///
    /// The other parts are found by the batch's number: a repeat under other grants numbers its parts otherwise.
    private func kept(
        _ batch: Int64, device: Device, own: PartOutcome, until deadline: Duration
    ) async throws(FanOutError) -> BatchAnswer? {
        let summary = own.summary ?? BatchSummary(changeCount: own.results.count)
        var parts = [BatchAnswer.Part(owner: device.caller, outcome: own)]
        for owner in summary.otherOwners {
            let key = DeviceKey(owner: owner, device: device)
            let wait = time.remaining(until: deadline)
            guard let outcome = try await link.keptOutcome(of: batch, for: key, within: wait) else { return nil }
            parts.append(BatchAnswer.Part(owner: owner, outcome: outcome))
        }
        return try complete(BatchAnswer(batch: batch, isRepeat: true, summary: summary, parts: parts))
    }

    /// No answer leaves a change out.
    private func complete(_ answer: BatchAnswer) throws(FanOutError) -> BatchAnswer {
        guard answer.isComplete else { throw .notReady("the parts of the batch do not make up the whole") }
        return answer
    }
}
