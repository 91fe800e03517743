import Foundation

/// One session: batches are sent and pages applied until nothing is pending and nothing is left to pull.
extension Weir {
    /// Runs a session as this process's, and keeps the status.
    ///
    /// - Returns: whether something that could not be sent is pending.
    /// - Throws: `SyncError`, `LeaseHeld`, `CancellationError`.
    package func runSession() async throws -> Bool {
        let attachment = try attached
        do {
            try attachment.lease.take(in: openFile.database, now: attachment.options.now())
            defer { release(attachment.lease) }
            try SessionRecord(database: openFile.database).require(attachment.account)
            isLeasedElsewhere = false
            let before = try openFile.pendingRows()
            statuses.update { ($0.phase, $0.pendingRows) = (.syncing, before) }
            let held = try await exchangeAll(attachment)
            let database = try openFile.database
            let pending = try openFile.pendingRows()
            if try openFile.completeUnchanged() { changes.update { $0 += 1 } }
            try database.setCheckpointDistance(.short)
            statuses.update { status in
                status.succeed(at: attachment.options.now())
                status.firstSync = 1
                status.pendingRows = pending
            }
            return held
        } catch {
            // What a cancelled request throws is of no interest.
            try Task.checkCancellation()
            switch error {
            case is LeaseHeld:
                isLeasedElsewhere = true
                throw error
            case is CancellationError, WeirError.suspended, WeirError.closed: throw error
            default:
                let failure = SyncError(error)
                statuses.update { $0.fail(failure) }
                throw failure
            }
        }
    }

    /// Gives the lease back, also of a session that was cancelled by ``suspend()``.
    func release(_ lease: Lease) {
        do {
            if let database = openDatabase { try lease.release(in: database) }
        } catch {
            // The file cannot be written at the moment. The lease runs out, and the session's own outcome counts.
        }
    }

    private func exchangeAll(_ attachment: Attachment) async throws -> Bool {
        var exchange = Exchange(sizes: attachment.sizes)
        do {
            return try await exchangeAll(attachment, &exchange)
        } catch {
            await exchange.next?.end()
            throw error
        }
    }

    private func exchangeAll(_ attachment: Attachment, _ exchange: inout Exchange) async throws -> Bool {
        // A token may run out during a long session, but a new one is not asked for twice in a row.
        var wasRejected = false
        while true {
            try Task.checkCancellation()
            do {
                let isOver = try await exchangeOnce(attachment, &exchange)
                if isOver { return exchange.isHeld }
                wasRejected = false
            } catch let error as SyncError where error.kind == .unauthenticated && !wasRejected {
                wasRejected = true
            } catch let error as WeirError where error == .staleFile {
                // The file is opened again, or was reset, and is continued from what it has.
                exchange.isDrained = false
                await exchange.endNext()
            } catch is Applying.RolledBack {
                // The same request is sent again, and the row waits among those that cannot be written.
            }
        }
    }

    /// What a session carries from one request to the next.
    private struct Exchange {
        /// Whether there are edits that cannot be sent, be it for a table that the server does not have.
        var isHeld = false
        var progress = FirstSyncProgress()
        /// Whether the last answer left nothing to pull.
        var isDrained = false
        /// By the batches that were found too large.
        var sizes: BatchSizes
        /// Why batches cannot be sent in this session, in which everything is pulled all the same.
        var rejection: SyncError?
        /// Requests in a row after which neither side had anything new.
        var idle = 0
        var next: NextPage?
        /// How many resets there were before ``next``, those of the page before it included.
        var resets: Int64 = 0

        mutating func endNext() async {
            await next?.end()
            next = nil
        }
    }

    /// Answers without anything new, and with more to follow, that are taken for a fault of the server.
    private static let mostIdle = 10

    /// Sends one request, and applies its answer.
    ///
    /// - Returns: whether the session is over.
    private func exchangeOnce(_ attachment: Attachment, _ exchange: inout Exchange) async throws -> Bool {
        let server = attachment.server
        let caller = try await server.caller()
        var schema = try await cachedSchema(server, caller)
        let file = try openFile
        let record = SessionRecord(database: file.database)
        // Before anything is read on which the answer builds.
        var resets = try Resets(database: file.database).count
        if resets != exchange.resets { await exchange.endNext() }
        try attachment.takeLease(in: file.database)

        let device = try file.requiring(resets: &resets) {
            try record.knowledgeID(attachment.options.knowledgeID)
        }
        var request = SyncRequest(
            knowledgeID: device, epoch: try file.epoch,
            limit: min(attachment.options.pageRows, schema.limits.maxLimit))
        request.knowledge = try file.knowledge()
        request.cutFrom = try file.cutFrom()
        if schema.schema.epoch == request.epoch { request.schemaVersion = schema.schema.schemaVersion }
        // The server takes what it receives for the token's account, and a batch's bases for those of its epoch.
        let mayFreeze = try !record.mustDrain && schema.schema.epoch == file.epoch
        if exchange.rejection == nil, caller.isVerified, try mayFreeze || file.hasBatch {
            // The vector may be longer when the batch is sent again.
            let bytes = schema.limits.maxBatchBytes - request.overhead - schema.limits.maxBatchBytes / 8
            let limits = BatchLimits(changes: schema.limits.maxChanges, bytes: bytes, sizes: exchange.sizes)
            let session = BatchSession(
                knowledgeID: device, account: attachment.account, schema: schema.schema, limits: limits)
            let frozen = try file.requiring(resets: &resets) { try file.freeze(session) }
            if !frozen.isRepeat {
                exchange.isHeld = frozen.heldCount > 0 || !frozen.unknownTables.isEmpty
                showHeld(frozen)
                // The states of its rows have changed.
                if frozen.batch != nil { changes.update { $0 += 1 } }
            }
            request.batch = frozen.batch
        }
        if exchange.isDrained, let rejection = exchange.rejection { throw rejection }
        if mayFreeze, caller.isVerified, request.batch == nil, exchange.isDrained {
            try file.requiring(resets: &resets) { try record.setComplete() }
            return true
        }

        let path = request.batch == nil ? "v1/pull" : "v1/sync"
        var answer: SyncAnswer
        do {
            answer = try await respond(to: request, path, &exchange, server, caller)
        } catch let error as SyncError where error.status == 413 {
            guard let batch = request.batch else { throw error }
            // The limits were lowered, or are those of a proxy. A repeated batch may have been applied before.
            exchange.sizes.exclude(batch)
            self.attachment?.sizes = exchange.sizes
            try require(file)
            try file.requiring(resets: &resets) {
                try file.database.transaction {
                    try record.setMustDrain(true)
                    try file.thawBatch()
                }
            }
            _ = try await fetchSchema(server, caller, known: schema)
            return false
        } catch let error as SyncError where request.batch != nil && Self.concernsBatch(error) {
            exchange.rejection = error
            exchange.isDrained = false
            return false
        }
        guard answer.syncID == attachment.account.syncID else {
            throw SyncError(.otherAccount, "the token is of \(answer.syncID), and the file of another account")
        }
        await server.verify(caller)
        guard answer.batch?.batch == request.batch?.number else {
            throw SyncError(.unreadable, "the response has the outcome of another batch")
        }
        try await addRows(to: &answer, of: request, server, caller)
        if answer.schemaVersion != schema.schema.schemaVersion || answer.epoch != schema.schema.epoch {
            schema = try await fetchSchema(server, caller, known: schema)
        }
        try require(file)
        exchange.next = NextPage(after: answer, of: request, server, caller)
        let commits = writes.count
        let isIncomplete: Bool
        (isIncomplete, exchange.resets) = try await apply(answer, to: file, schema, attachment, resets: resets)
        // Also one without rows: those that have waited may be written with it and others removed, and the views of states read the
        // vector, which each answer writes.
        if writes.count != commits { changes.update { $0 += 1 } }
        askResolvers()
        showProgress(answer, &exchange.progress)
        let isSettled = request.batch != nil && answer.batch?.refusal == nil
        let isNew = isSettled || !answer.changes.isEmpty || !answer.revoked.isEmpty
        if isNew { await runner?.runner.record(.progressed) }
        exchange.idle = isNew ? 0 : exchange.idle + 1
        if exchange.idle > Self.mostIdle {
            throw SyncError(
                .unreadable, "the server has more, or refuses each batch, and nothing follows from its answers")
        }
        exchange.isDrained = answer.isLast && !isIncomplete
        return false
    }

    /// The answer to a request, which may have been sent before.
    private func respond(
        to request: SyncRequest, _ path: String, _ exchange: inout Exchange, _ server: Server, _ caller: Server.Caller
    ) async throws -> SyncAnswer {
        let next = exchange.next
        exchange.next = nil
        if let next, let answer = try await keepingLease({ try await next.answer(to: request, as: caller) }) {
            return answer
        }
        return try Self.answer(in: try await send("POST", path, body: request.json(), to: server, as: caller))
    }

    /// Parses the answer in a response's body.
    static func answer(in response: TransportResponse) throws -> SyncAnswer {
        try read(response) { try SyncAnswer(json: $0) }
    }

    /// Whether a failure is that of sending a batch, which pulling need not wait for: of a device that may only read, of a server that has
    /// no space, no outcome yet, or yet to learn the batch's schema version.
    private static func concernsBatch(_ error: SyncError) -> Bool {
        switch error.kind {
        case .forbidden, .rejected: true
        case .unavailable: ["storage_full", "outcome_pending", "not_ready"].contains(error.code)
        default: false
        }
    }

    private func showProgress(_ answer: SyncAnswer, _ progress: inout FirstSyncProgress) {
        progress.receive(answer)
        statuses.update { status in
            status.phase = answer.hasMore ? .catchingUp : .syncing
            if status.firstSync != 1 { status.firstSync = max(status.firstSync ?? 0, progress.fraction) }
        }
    }

    private func showHeld(_ frozen: FrozenBatch) {
        statuses.update { status in
            var attention = status.needsAttention.filter { !$0.isHeld }
            if frozen.heldCount > 0 { attention.insert(.unsendableRows(frozen.heldCount)) }
            if !frozen.unknownTables.isEmpty { attention.insert(.unknownTables(frozen.unknownTables)) }
            if !frozen.unknownColumns.isEmpty { attention.insert(.unknownColumns(frozen.unknownColumns)) }
            status.needsAttention = attention
        }
    }
}
