import AsyncPrimitives
import ChangeLog
import Observability
import PartitionSupervision
import SyncModel
import SyncWire
import Synchronization

extension ControlTopic {
    /// Learns the schema versions that are registered and the records that are left out while the process runs, and checks that
    /// the topic is still that of its history, until the task is cancelled.
    ///
    /// A version becomes known when `prepare` has returned: from then on stages process records of it. Failures of `prepare` and
    /// retriable failures of the log are logged and retried; meanwhile partitions that need the version are paused, and the
    /// others continue. Reading does not wait for `prepare`: what else is decided is known at once. After a record that cannot be
    /// decoded, because a newer process wrote it, no version is learned: the process continues with those it knows until it is
    /// upgraded. One call at a time.
    ///
    /// The topic is read from its start after every failure and after `checkInterval`. While it lacks what was read of it
    /// before, that is reported, logged and checked again.
    ///
    /// - Parameters:
    ///   - retryDelay: the first and the longest pause before a retry.
    ///   - checkInterval: how long to wait for further records before the topic is read from its start again; `nil` for no limit.
    ///   - checked: called after each check with what is wrong with the topic; `nil` where nothing is.
    ///   - prepare: prepares the process for the versions, of which the newest is new; may be called again with the same.
    /// - Throws: ``ControlError`` when the topic can no longer be what it was, ``ControlError/otherHistory(found:own:)`` where
    ///   it is another one; `ChangeLogError` where trying again cannot help.
    package func follow(
        _ log: some ChangeLog, retryDelay: ClosedRange<Duration> = .milliseconds(100)...(.seconds(10)),
        checkInterval: Duration? = nil, clock: any Clock<Duration> = ContinuousClock(), logger: Logger,
        checked: @Sendable (ControlError?) async -> Void = { _ in },
        prepare: @escaping @Sendable (SchemaHistory) async throws -> Void = { _ in }
    ) async throws {
        let retries = RetryPolicy(delays: retryDelay, clock: clock)
        // As many as are registered while the process runs.
        let (versions, registered) = AsyncStream.makeStream(of: SchemaHistory.self)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.learn(versions, retries, logger, prepare) }
            try await read(log, retries, checkInterval, logger, checked, registered)
            group.cancelAll()
        }
    }

    private func read(
        _ log: some ChangeLog, _ retries: RetryPolicy, _ checkInterval: Duration?, _ logger: Logger,
        _ checked: @Sendable (ControlError?) async -> Void, _ registered: AsyncStream<SchemaHistory>.Continuation
    ) async throws {
        var backoff = Backoff(retries)
        var view = view.withLock { $0 }
        var reported: String?
        while !Task.isCancelled {
            do {
                let reader = try await reader(of: log, holding: view.nextOffset)
                // Ends a wait for records, and nothing else: the topic may also be recreated while it is checked.
                let isChecked = AwaitableState(false)
                let timer = checkInterval.map { interval in
                    Task {
                        // A long topic may take longer to read than to wait for more of it.
                        for _ in 0..<Self.checkIntervals {
                            try await retries.clock.sleep(for: interval)
                            if isChecked.value { break }
                        }
                        await reader.close()
                    }
                }
                let result = await Result.capturing {
                    var records = try await check(reader, before: view.nextOffset)
                    isChecked.update { $0 = true }
                    reported = nil
                    await checked(nil)
                    while true {
                        for record in records { try learn(record, &view, logger, registered) }
                        backoff.reset()
                        records = try await reader.next(maximumBytes: 1 << 20)
                    }
                }
                timer?.cancel()
                await reader.close()
                // If the whole log was closed, the next attempt to open a reader shows it.
                if timer != nil, case .failure(let error as ChangeLogError) = result, error.code == .closed { continue }
                try result.get()
            } catch {
                if Task.isCancelled { return }
                if let absence = ControlError(absence: error) {
                    await checked(absence)
                    if reported != absence.description {
                        logger.error("control does not hold this history", error: absence)
                    }
                    reported = absence.description
                } else {
                    guard let cause = error as? ChangeLogError, cause.isRetriable else { throw error }
                    logger.warning("Reading the topic control failed; trying again", error: cause)
                }
                do { try await backoff.pause() } catch { return }
            }
        }
    }

    /// How many intervals a check may take before the topic is read from its start again.
    private static let checkIntervals = 20

    private func learn(
        _ record: LogRecord, _ view: inout ControlView, _ logger: Logger,
        _ registered: AsyncStream<SchemaHistory>.Continuation
    ) throws {
        let news: ControlView.News
        do throws(ControlError) {
            news = try view.take(record)
        } catch .unreadableRecord(let offset, let reason) {
            let error = ControlError.unreadableRecord(offset: offset, reason: reason)
            if view.pass(record) {
                logger.critical(
                    "A record of control cannot be decoded: this process learns no further schema versions; upgrade it",
                    [.offset: .integer(Int(offset))], error: error)
            } else {
                logger.warning(
                    "A record of control cannot be decoded and is skipped", [.offset: .integer(Int(offset))],
                    error: error)
            }
            return
        }
        switch news {
        case .nothing, .history: break
        case .late(let ordinal):
            logger.notice(
                "Two processes registered a schema version at once; the first record counts",
                [.version: .integer(ordinal), .offset: .integer(Int(record.offset))])
        case .skip(let skip):
            known.learn(leavingOut: view.skipped)
            logger.notice("A record is left out, as an operator decided", skip.metadata)
        case .device(let decision):
            devices.learn(view.revoked)
            logger.notice(
                decision.isRevoked ? "A device is revoked" : "A device is no longer revoked",
                [.offset: .integer(Int(record.offset))])
        case .overtaken(let skip):
            logger.warning(
                "The decision to leave a record out is ignored: a schema version was registered meanwhile",
                skip.metadata)
        case .schema: registered.yield(view.schemas)
        }
    }

    /// Makes versions known one after the other, each once the process is prepared for it, until the task is cancelled.
    private func learn(
        _ versions: AsyncStream<SchemaHistory>, _ retries: RetryPolicy, _ logger: Logger,
        _ prepare: @Sendable (SchemaHistory) async throws -> Void
    ) async {
        for await schemas in versions {
            guard let version = schemas.newest?.version else { continue }
            var backoff = Backoff(retries)
            while true {
                do {
                    try await prepare(schemas)
                    break
                } catch {
                    if Task.isCancelled { return }
                    logger.error(
                        "Preparing for a schema version failed; trying again", [.version: .integer(version.ordinal)],
                        error: error)
                }
                do { try await backoff.pause() } catch { return }
            }
            known.learn(schemas)
            logger.notice(
                "Schema version learned", [.version: .integer(version.ordinal), .schemaVersion: .string(version.hash)])
        }
    }
}

extension SkippedRecord {
    fileprivate var metadata: LogMetadata {
        [
            .topic: .string(position.source.rawValue), .partition: .integer(position.partition),
            .offset: .integer(Int(position.offset)), .reason: .string(reason),
        ]
    }
}
