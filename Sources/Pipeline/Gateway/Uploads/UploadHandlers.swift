import ChangeLog
import FanOutLink
import HTTP
import JSONText
import Metrics
import SyncModel
import SyncWire

/// `POST /v1/sync` and `POST /v1/upload`.
extension GatewayHandler {
    /// Uploads, waits for the outcome and pulls; all in one response.
    func sync(_ caller: Caller, _ device: Device, _ envelope: Envelope) async throws -> HTTPResponse {
        var batch: BatchOutcome?
        if envelope.isUpload {
            switch try await append(caller, device, envelope) {
            case .refused(let outcome): batch = outcome
            case .appended(let upload):
                return try await outcomeAndPage(of: upload, caller, device, envelope)
            }
        } else if envelope.namesBatch {
            batch = .empty
        }
        return try await read(
            try page(caller, envelope, covering: batch), batch: batch, device, isRefusable: !envelope.isUpload)
    }

    /// Responds to an upload that is durable.
    ///
    /// - Throws: `outcome_pending` in place of what asks for a repeat, where a repeat would be applied again. Not for what was pulled.
    private func outcomeAndPage(
        of upload: UploadReference, _ caller: Caller, _ device: Device, _ envelope: Envelope
    ) async throws -> HTTPResponse {
        do {
            let outcome = try await outcome(
                of: upload, device, envelope.batch, ShownRows(noneFor: caller), within: configuration.outcomeWait)
            guard outcome.leavesOutRows else {
                return try await read(
                    try page(caller, envelope, covering: outcome), batch: outcome, device, isRefusable: false)
            }
            return try await readWithRows(of: outcome, of: upload, caller, device, envelope)
        } catch {
            let problem = Problem(error)
            guard envelope.batch == nil, [.overloaded, .notReady].contains(problem.code) else { throw problem }
            throw Problem(FanOutError.pending)
        }
    }

    /// Responds with the rows of conflicts, and with a page of what they leave of its size.
    ///
    /// The rows are read first, since the device applies them first, and whatever it has pulled: those of a batch without a number cannot be
    /// asked for again. They count as touched, too.
    private func readWithRows(
        of outcome: BatchOutcome, of upload: UploadReference, _ caller: Caller, _ device: Device, _ envelope: Envelope
    ) async throws -> HTTPResponse {
        let deadline = clock.now() + configuration.outcomeWait
        let space = try await reservePage(for: device, until: deadline, isRefusable: false)
        defer { release(space, of: device) }
        let batch = try await addingRows(to: outcome, of: upload, caller, device, until: deadline)
        let page = try page(caller, envelope, covering: batch)
        let (pages, whole) = try await readPages(
            page, device, in: space, keeping: batch.rowBytes, until: clock.now() + configuration.outcomeWait)
        return respond(page, pages, batch: batch, whole)
    }

    /// Adds the rows of conflicts, for which the caller has reserved a page.
    ///
    /// They stay left out where the outcome is not known any more: that of a batch without a number is known for a short time.
    func addingRows(
        to outcome: BatchOutcome, of upload: UploadReference, _ caller: Caller, _ device: Device,
        until deadline: Duration
    ) async throws(Problem) -> BatchOutcome {
        let rows = ShownRows(for: caller, maximumBytes: configuration.pageBytes)
        var outcome = outcome
        do throws(FanOutError) {
            var shown = try await known(outcome.batch, of: upload, device, rows)
            if shown == nil, outcome.batch != nil {
                // From another fan-out than the outcome, which it has yet to reach.
                shown = try await outcomes.outcome(
                    of: upload, device: device, batch: outcome.batch, rows: rows, until: deadline)
            }
            if let shown { outcome.show(rowsOf: shown) }
        } catch {
            if outcome.batch != nil { throw Problem(FanOutError.pending) }
        }
        return outcome
    }

    /// The page of a response with a batch: from streams that cover it, without the rows that it wrote.
    private func page(
        _ caller: Caller, _ envelope: Envelope, covering batch: BatchOutcome?
    ) throws(Problem) -> PullPage {
        try page(
            caller, envelope, held: batch?.held(by: envelope.knowledge) ?? [:], leastHeads: batch?.heads ?? [:])
    }

    /// Uploads, and waits for the outcome only if the request prefers to.
    ///
    /// An upload is accepted, and not refused, where its outcome or the space for it is not there in time.
    func upload(
        _ caller: Caller, _ device: Device, _ envelope: Envelope, wait: Duration?
    ) async throws -> HTTPResponse {
        guard envelope.namesBatch else {
            throw Problem(.invalidRequest, "the request must have batch, changes, or both")
        }
        let mayWait = (wait ?? .zero) > .zero && !polls.isStopping
        guard envelope.isUpload else { return mayWait ? respond(.empty) : accepted(nil) }
        switch try await append(caller, device, envelope) {
        case .refused(let outcome): return respond(outcome)
        case .appended(let upload):
            guard let wait, mayWait else { return accepted(envelope.batch) }
            let deadline = clock.now() + wait
            do throws(Problem) {
                let known = try await outcome(
                    of: upload, device, envelope.batch, ShownRows(noneFor: caller), within: wait)
                guard known.leavesOutRows else {
                    return try await reserving(respond(known), for: caller, until: deadline)
                }
                let reservation = try await reserve(configuration.pageBytes, for: device.caller, until: deadline)
                var response = respond(
                    try await addingRows(to: known, of: upload, caller, device, until: deadline))
                response.reservation = reservation
                return response
            } catch {
                return accepted(envelope.batch)
            }
        }
    }

    /// Appends changes without a number, which are for no epoch.
    func appendBatch(
        _ caller: Caller, _ device: Device, _ envelope: Envelope
    ) async throws -> UploadReference {
        switch try await append(caller, device, envelope) {
        case .appended(let upload): return upload
        case .refused: throw Problem(.notReady, "the changes were refused as a whole")
        }
    }

    private enum AppendResult {
        /// The upload is durable in the log.
        case appended(UploadReference)
        /// The upload was not appended.
        case refused(BatchOutcome)
    }

    private func append(_ caller: Caller, _ device: Device, _ envelope: Envelope) async throws -> AppendResult {
        // A refusal may be held back.
        defer { envelope.changes?.drop() }
        if let epoch = envelope.epoch, !epoch.utf8.elementsEqual(history.epoch.utf8) {
            return .refused(BatchOutcome(batch: envelope.batch, refusal: .historyChanged))
        }
        if let version = versionAhead(in: envelope) {
            throw Problem(.notReady, "schema version \(version) is not known here yet: send the request again")
        }
        // Another unknown version belongs to another server; its changes are checked against the newest one.
        let schema = try envelope.schemaVersion.flatMap { schemas()[$0] } ?? newestSchema()
        let others = partitions(namedBy: envelope, of: caller)
        try checkBacklog(of: caller, naming: others)
        let byteCount = envelope.changes?.byteCount ?? 0
        let isDelayed = try await windows?.enter(caller.syncID, bytes: byteCount) ?? false
        let upload: UploadReference
        do {
            if isDelayed {
                metrics.delayedUploads.add()
                try rates.check(
                    device, RateCost(bytes: 1, requests: 0), besides: RateCost(bytes: byteCount, requests: 0))
            }
            upload = try await append(caller, device, envelope, schema, bytes: byteCount)
        } catch {
            windows?.failed(caller.syncID)
            throw error
        }
        windows?.appended(upload, of: caller.syncID, naming: others)
        backlog?.appended(upload, at: clock.now())
        if let number = envelope.batch { pending.insert(number, of: device, at: upload) }
        return .appended(upload)
    }

    /// Appends a batch that has its place in the window.
    private func append(
        _ caller: Caller, _ device: Device, _ envelope: Envelope, _ schema: SchemaHistory.Entry, bytes: Int
    ) async throws -> UploadReference {
        // It may have waited for seconds.
        try checkRevoked(device)
        try quota.enter(caller.syncID, bytes: bytes)
        defer { quota.leave(caller.syncID, bytes: bytes) }
        var outcomeLimits = limits.outcome
        // A face may have added changes of its own to as many as are allowed.
        outcomeLimits.maxChanges = max(outcomeLimits.maxChanges, envelope.changeCount)
        let message = ChangeBatch(
            epoch: history.epoch, schema: schema.version.hash, device: device, batch: envelope.batch,
            isAtomic: envelope.isAtomic, grants: caller.grants, limits: outcomeLimits,
            changes: envelope.changes?.take() ?? Array("[]".utf8)
        ).encode()
        return try await append(message, of: caller, changes: envelope.changeCount, bytes: bytes)
    }

    private func append(
        _ message: [UInt8], of caller: Caller, changes: Int, bytes: Int
    ) async throws(ChangeLogError) -> UploadReference {
        let stopwatch = Stopwatch()
        do throws(ChangeLogError) {
            let upload = try await uploads.append(message, of: caller.syncID)
            metrics.appendDuration.record(stopwatch.nanoseconds)
            metrics.uploads.add()
            metrics.changes.add(changes)
            metrics.uploadSize.record(bytes)
            return upload
        } catch {
            metrics.appendFailures.add()
            throw error
        }
    }

    /// The partitions, besides the caller's, of those owners whose rows a batch may write.
    private func partitions(namedBy envelope: Envelope, of caller: Caller) -> Set<Int> {
        var partitions: Set<Int> = []
        if envelope.owners.isEmpty { return partitions }
        for grant in caller.grants where grant.access == .write && envelope.owners.contains(grant.owner) {
            partitions.insert(uploads.partition(of: grant.owner))
        }
        partitions.remove(uploads.partition(of: caller.syncID))
        return partitions
    }

    /// Refuses uploads to partitions whose lag is too long (I10), except for one probe a second.
    private func checkBacklog(of caller: Caller, naming others: Set<Int>) throws(Problem) {
        guard let backlog else { return }
        let own = uploads.partition(of: caller.syncID)
        // The caller's last: its probe is taken only by an upload that will be appended.
        for partition in others.sorted() + [own] {
            let (lag, accepts) = backlog.check(partition, own: partition == own, at: clock.now())
            uploads.recordLag(lag, of: partition, isTooLong: lag > backlog.maximumLag)
            if accepts { continue }
            throw Problem(
                .overloaded, "uploads wait \(lag.components.seconds) seconds until they can be pulled", retryAfter: 5)
        }
    }

    /// - Throws: `outcome_pending` for every error of the fan-out, so that the client learns that the upload is
    ///   durable.
    func outcome(
        of upload: UploadReference, _ device: Device, _ batch: Int64?, _ rows: ShownRows, within wait: Duration
    ) async throws(Problem) -> BatchOutcome {
        do throws(FanOutError) {
            let outcome = try await outcomes.outcome(
                of: upload, device: device, batch: batch, rows: rows, until: clock.now() + wait)
            pending.remove(batch, of: device)
            return outcome
        } catch {
            throw Problem(FanOutError.pending)
        }
    }

    /// A response with a `batch` object only.
    func respond(_ batch: BatchOutcome, _ content: BatchOutcome.Content = .results) -> HTTPResponse {
        var writer = JSONWriter(capacity: 1024)
        writer.object { writer in
            writer.name("batch")
            batch.write(content, to: &writer)
        }
        return .json(200, writer.take())
    }

    /// 202: the upload is durable; with its batch number if it has one.
    func accepted(_ batch: Int64?) -> HTTPResponse {
        var writer = JSONWriter(capacity: 64)
        writer.object { writer in
            if let batch { writer.member("batch", batch) }
        }
        return .json(202, writer.take())
    }
}

/// The header `Prefer` (RFC 7240).
enum Preference {
    /// The seconds of `wait=N`, reduced to `Envelope.maximumWait`; `nil` if the request has no such preference.
    static func wait(of request: HTTPRequest) -> Duration? {
        for header in request.headers.all("prefer") {
            for preference in String(decoding: header, as: UTF8.self).split(whereSeparator: { $0 == "," || $0 == ";" })
            {
                let parts = preference.split(separator: "=", maxSplits: 1)
                guard parts.count == 2, parts[0].filter({ $0 != " " }).lowercased().utf8.elementsEqual("wait".utf8),
                    let seconds = Int(parts[1].filter { $0 != " " && $0 != "\"" }), seconds >= 0
                else { continue }
                return .seconds(min(seconds, Envelope.maximumWait))
            }
        }
        return nil
    }
}
