import ChangeLog
import FanOutLink
import HTTP
import JSONText
import Metrics
import SyncModel
import SyncWire

/// The exchanges of `/v1/sync`, `/v1/upload` and `/v1/pull`.
extension GatewayHandler {
    /// Upload, wait for the outcome, pull: one answer.
    func sync(_ caller: Caller, _ device: Device, _ envelope: Envelope) async throws -> HTTPResponse {
        var batch: BatchAnswer?
        if envelope.isUpload {
            switch try await append(caller, device, envelope) {
            case .refused(let answer): batch = answer
            case .appended(let upload):
                batch = try await outcome(of: upload, device, envelope.batch, within: configuration.outcomeWait)
            }
        } else if envelope.namesBatch {
            batch = .empty
        }
        let page = try page(caller, envelope, held: batch?.held(by: envelope.knowledge) ?? [:])
        let pages = try await link.pull(page.request, within: configuration.outcomeWait)
        return respond(page, pages, batch: batch, caller: caller)
    }

    /// The first half: durable, and with a preference to wait the outcome.
    func upload(
        _ caller: Caller, _ device: Device, _ envelope: Envelope, wait: Duration?
    ) async throws -> HTTPResponse {
        guard envelope.namesBatch else { throw Problem(.invalidRequest, "there is neither batch nor changes") }
        let mayWait = (wait ?? .zero) > .zero && !polls.isStopping
        guard envelope.isUpload else { return mayWait ? respond(.empty, caller: caller) : accepted(nil) }
        switch try await append(caller, device, envelope) {
        case .refused(let answer): return respond(answer, caller: caller)
        case .appended(let upload):
            guard let wait, mayWait else { return accepted(envelope.batch) }
            do throws(Problem) {
                return respond(try await outcome(of: upload, device, envelope.batch, within: wait), caller: caller)
            } catch {
                return accepted(envelope.batch)
            }
        }
    }

    /// The second half, with what it must cover and how long it may wait for news.
    func pull(_ caller: Caller, _ device: Device, _ envelope: Envelope) async throws -> HTTPResponse {
        let deadline = time.now() + configuration.outcomeWait
        for batch in envelope.include {
            guard try await outcomes.keptOutcome(of: batch, device: device, until: deadline) != nil else {
                throw Problem(.outcomePending, "no outcome of batch \(batch) is known yet: ask again, or send it")
            }
            pending.remove(batch, of: device)
        }
        let page = try page(caller, envelope, held: [:])
        guard envelope.wait > .zero else {
            let pages = try await link.pull(page.request, within: configuration.outcomeWait)
            return respond(page, pages, batch: nil, caller: caller)
        }
        return try await longPoll(caller, envelope, page)
    }

    /// Answers a pull that nothing moved for without a task; `nil` when something must be read.
    func pullAtOnce(_ caller: Caller, _ envelope: Envelope) throws(Problem) -> HTTPAnswer? {
        let page = try page(caller, envelope, held: [:])
        guard let pages = idlePages(page) else { return nil }
        return .response(respond(page, pages, batch: nil, caller: caller))
    }

    private func longPoll(_ caller: Caller, _ envelope: Envelope, _ page: PullPage) async throws -> HTTPResponse {
        let deadline = time.now() + envelope.wait
        let signal = MoveSignal()
        // Subscribed before the first look, so that no move falls between.
        let subscription = link.subscribe(to: page.request.owners.map(\.owner)) { _, _ in signal.fire() }
        defer { subscription.cancel() }
        polls.add(signal)
        defer { polls.remove(signal) }
        let timer = Task { [time] in
            // Cancelled once the poll has its answer.
            do { try await time.sleep(deadline) } catch { return }
            signal.fire()
        }
        defer { timer.cancel() }
        while true {
            let pages: [OwnerPage]
            if let idle = idlePages(page) {
                pages = idle
            } else {
                pages = try await link.pull(page.request, within: configuration.outcomeWait)
            }
            if page.hasNews(pages) || polls.isStopping || time.now() >= deadline {
                return respond(page, pages, batch: nil, caller: caller)
            }
            await signal.next()
            try Task.checkCancellation()
        }
    }

    private func idlePages(_ page: PullPage) -> [OwnerPage]? {
        var pages: [OwnerPage] = []
        pages.reserveCapacity(page.request.owners.count)
        for owner in page.request.owners {
            guard let idle = link.idlePage(owner) else { return nil }
            pages.append(idle)
        }
        return pages
    }

    // MARK: Uploading

    /// What became of an attempt to append.
    enum Appended {
        /// The log has it.
        case appended(UploadReference)
        /// It was not appended: the answer.
        case refused(BatchAnswer)
    }

    private func append(_ caller: Caller, _ device: Device, _ envelope: Envelope) async throws -> Appended {
        if let epoch = envelope.epoch, !epoch.utf8.elementsEqual(history.epoch.utf8) {
            return .refused(BatchAnswer(batch: envelope.batch, refusal: .historyChanged))
        }
        // A version that is not known was another server's: the newest decides what its changes may say.
        let schema = try envelope.schemaVersion.flatMap { schemas()[$0] } ?? newestSchema()
        try checkBacklog(of: caller)
        let byteCount = envelope.changes?.byteCount ?? 0
        try quota.enter(caller.syncID, bytes: byteCount, changes: envelope.changeCount)
        defer { quota.leave(caller.syncID, bytes: byteCount) }
        let message = ChangeBatch(
            epoch: history.epoch, schema: schema.version.hash, device: device, batch: envelope.batch,
            isAtomic: envelope.isAtomic, grants: caller.grants, changes: envelope.changes?.take() ?? Array("[]".utf8)
        ).encode()
        let upload = try await append(message, of: caller, changes: envelope.changeCount, bytes: byteCount)
        backlog?.began(upload, at: time.now())
        if let number = envelope.batch { pending.insert(number, of: device, at: upload) }
        return .appended(upload)
    }

    private func append(
        _ message: [UInt8], of caller: Caller, changes: Int, bytes: Int
    ) async throws(ChangeLogError) -> UploadReference {
        let watch = Stopwatch()
        do throws(ChangeLogError) {
            let upload = try await uploads.append(message, of: caller.syncID)
            metrics.appendDuration.record(watch.nanoseconds)
            metrics.uploads.add()
            metrics.changes.add(changes)
            metrics.uploadSize.record(bytes)
            return upload
        } catch {
            metrics.appendFailures.add()
            throw error
        }
    }

    /// Refuses an upload that would wait longer than is allowed behind those before it (I10), but for one now and then.
    private func checkBacklog(of caller: Caller) throws(Problem) {
        guard let backlog else { return }
        let partition = uploads.partition(of: caller.syncID)
        let (lag, takesOneMore) = backlog.judge(partition, at: time.now())
        uploads.note(lag, of: partition, isTooLong: lag > backlog.maximumLag)
        if takesOneMore { return }
        throw Problem(
            .overloaded, "uploads wait for \(lag.components.seconds) seconds to be ordered", retryAfter: 5)
    }

    /// The outcome of what the log has: whatever keeps the fan-out from telling it, the client must learn that it is durable.
    private func outcome(
        of upload: UploadReference, _ device: Device, _ batch: Int64?, within wait: Duration
    ) async throws(Problem) -> BatchAnswer {
        do throws(FanOutError) {
            let answer = try await outcomes.outcome(
                of: upload, device: device, batch: batch, until: time.now() + wait)
            pending.remove(batch, of: device)
            return answer
        } catch {
            throw Problem(FanOutError.pending)
        }
    }

    // MARK: Answers

    private func page(
        _ caller: Caller, _ envelope: Envelope, held: [SyncID: Set<TimeStamp>]
    ) throws(Problem) -> PullPage {
        let server = PullPage.Server(epoch: history.epoch, schemaVersion: try newestSchema().version.hash)
        return PullPage(
            caller: caller, envelope: envelope, server: server, held: held, maximumBytes: configuration.pageBytes)
    }

    private func respond(
        _ page: PullPage, _ pages: [OwnerPage], batch: BatchAnswer?, caller: Caller
    ) -> HTTPResponse {
        let size = pages.reduce(1024) { size, page in
            if case .rows(let rows) = page.content { size + rows.json.count + 96 * rows.entries.count } else { size }
        }
        var writer = JSONWriter(capacity: size)
        writer.object { writer in
            page.writeHead(to: &writer)
            if let batch {
                writer.name("batch")
                batch.write(to: &writer, for: caller)
            }
            page.write(pages, to: &writer)
        }
        return .json(200, writer.take())
    }

    /// The answer that holds a `batch` object alone.
    func respond(_ batch: BatchAnswer, caller: Caller) -> HTTPResponse {
        var writer = JSONWriter(capacity: 1024)
        writer.object { writer in
            writer.name("batch")
            batch.write(to: &writer, for: caller)
        }
        return .json(200, writer.take())
    }

    /// The answer that the log has a batch; without its number where it has none.
    func accepted(_ batch: Int64?) -> HTTPResponse {
        var writer = JSONWriter(capacity: 64)
        writer.object { writer in
            if let batch {
                writer.name("batch")
                writer.value(batch)
            }
        }
        return .json(202, writer.take())
    }
}

extension HTTPResponse {
    /// An answer of JSON.
    static func json(_ status: Int, _ body: [UInt8]) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: [HTTPField("Content-Type", "application/json")], body: body, isCompressible: true)
    }
}
