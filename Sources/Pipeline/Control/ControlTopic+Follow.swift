import AsyncPrimitives
import ChangeLog
import Observability
import SyncModel
import SyncWire
import Synchronization

extension ControlTopic {
    /// Learns of the schema versions that come while the process runs, and makes sure that the topic is still that of its
    /// history, until the task is cancelled.
    ///
    /// A version is made known once `prepare` has returned: from then on stages take messages of it. What fails in `prepare`,
    /// and what may pass in the log, is logged and tried again; meanwhile partitions that need the version stand still, and
    /// the others go on. Behind a record that cannot be read, since a newer process wrote it, no version is learned: the
    /// process goes on with those it knows until it is upgraded. One call at a time.
    ///
    /// The topic is read from its start whenever the reading begins anew, as it does after `checkInterval`. While it lacks
    /// what was read of it before, that is told and logged, and looked for again.
    ///
    /// - Parameters:
    ///   - log: the log that holds the topic.
    ///   - retryDelay: the first and the longest pause before something that failed is tried again; each is twice the one
    ///     before.
    ///   - checkInterval: how long further records are waited for before the topic is read from its start again; `nil` for as
    ///     long as nothing fails.
    ///   - clock: measures the pauses and the interval.
    ///   - logger: is told of versions and of failures.
    ///   - checked: told after each look what is wrong with the topic; `nil` where nothing is.
    ///   - prepare: makes whatever the process has ready for the versions given, the newest of which is the one that came;
    ///     may be called again with the same.
    /// - Throws: ``ControlError`` when the topic can no longer be what it was, ``ControlError/otherHistory(found:own:)`` where
    ///   it is another one; `ChangeLogError` where trying again cannot help.
    package func follow(
        _ log: some ChangeLog, retryDelay: ClosedRange<Duration> = .milliseconds(100)...(.seconds(10)),
        checkInterval: Duration? = nil, clock: any Clock<Duration> = ContinuousClock(), logger: Logger,
        checked: @Sendable (ControlError?) async -> Void = { _ in },
        prepare: @Sendable (SchemaHistory) async throws -> Void = { _ in }
    ) async throws {
        var backoff = Backoff(RetryPolicy(delays: retryDelay, clock: clock))
        var view = view.withLock { $0 }
        var told: String?
        while !Task.isCancelled {
            do {
                let reader = try await reader(of: log, holding: view.nextOffset)
                // Ends a wait for records, and nothing else: the topic may be made anew while it is checked, too.
                let timer = checkInterval.map { interval in
                    Task {
                        try await clock.sleep(for: interval)
                        await reader.close()
                    }
                }
                let result = await Result.capturing {
                    try await check(reader, before: view.nextOffset)
                    told = nil
                    await checked(nil)
                    while true {
                        for record in try await reader.next(maximumBytes: 1 << 20) {
                            try await learn(record, &view, logger, &backoff, prepare)
                        }
                        backoff.reset()
                    }
                }
                timer?.cancel()
                await reader.close()
                // A log that was closed, and not the reader alone, says so when it is asked for the next one.
                if timer != nil, case .failure(let error as ChangeLogError) = result, error.code == .closed { continue }
                try result.get()
            } catch {
                if Task.isCancelled { return }
                if let absence = ControlError(absence: error) {
                    await checked(absence)
                    if told != absence.description { logger.error("The history is gone", error: absence) }
                    told = absence.description
                } else {
                    guard let cause = error as? ChangeLogError, cause.isRetriable else { throw error }
                    logger.warning("The topic control cannot be read and is tried again", error: cause)
                }
                do { try await backoff.pause() } catch { return }
            }
        }
    }

    private func learn(
        _ record: LogRecord, _ view: inout ControlView, _ logger: Logger, _ backoff: inout Backoff,
        _ prepare: @Sendable (SchemaHistory) async throws -> Void
    ) async throws {
        let news: ControlView.News
        do throws(ControlError) {
            news = try view.take(record)
        } catch .unreadableRecord(let offset, let reason) {
            let error = ControlError.unreadableRecord(offset: offset, reason: reason)
            if view.pass(record) {
                logger.critical("No schema version is learned any more", [.offset: .integer(Int(offset))], error: error)
            } else {
                logger.warning("A record of control is passed over", [.offset: .integer(Int(offset))], error: error)
            }
            return
        }
        switch news {
        case .nothing, .history: break
        case .late(let ordinal):
            logger.notice(
                "A schema version was registered by two processes at once; the first counts",
                [.version: .integer(ordinal), .offset: .integer(Int(record.offset))])
        case .schema(let entry):
            while true {
                do {
                    try await prepare(view.schemas)
                    break
                } catch {
                    try Task.checkCancellation()
                    logger.error(
                        "A schema version waits until the process is ready for it; it is tried again",
                        [.version: .integer(entry.version.ordinal)], error: error)
                }
                try await backoff.pause()
            }
            known.learn(view.schemas)
            logger.notice(
                "A schema version is known",
                [.version: .integer(entry.version.ordinal), .schemaVersion: .string(entry.version.hash)])
        }
    }
}
