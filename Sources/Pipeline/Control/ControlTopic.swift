import AsyncPrimitives
import ChangeLog
import PartitionSupervision
import SyncModel
import SyncWire
import Synchronization

/// What all roles agree on, read from the topic `control`: the history, its schema versions, and the records that are left out.
///
/// Opening reads the whole topic; ``follow(_:retryDelay:checkInterval:clock:logger:checked:prepare:)`` learns the versions that
/// are registered while the process runs. A process refuses to start with another history than the one configured.
package final class ControlTopic: Sendable {
    package let history: History
    package let known: KnownSchemas
    /// The devices that are revoked, as known now.
    package let devices: DeviceRevocations
    /// What the opening, or the last registration, read.
    let view: Mutex<ControlView>
    let decisions: Mutex<PendingDecisions>

    /// The schema versions known now.
    package var schemas: SchemaHistory { known.now }
    /// The records that are left out, as known now.
    package var skipped: SkippedRecords { known.content.skipped }

    private init(_ history: History, _ view: ControlView) {
        self.history = history
        known = KnownSchemas(view.schemas, leavingOut: view.skipped)
        devices = DeviceRevocations(view.revoked)
        self.view = Mutex(view)
        decisions = Mutex(PendingDecisions(view: view))
    }

    /// Reads `control`, and writes `proposed` as the history where there is none.
    ///
    /// - Parameters:
    ///   - log: the log that holds the topic.
    ///   - proposed: the history to write to an empty log; its partitions, shards and clock are compared with an existing one's.
    ///   - accepts: throws where the process cannot work on a history: asked before one is written, since it is fixed then, and
    ///     of the one found.
    /// - Throws: ``ControlError`` when the history differs from what is configured; ``ChangeLogError``; what `accepts` throws.
    package static func open(
        in log: some ChangeLog, proposed: History, accepts: (History) throws -> Void = { _ in }
    ) async throws -> ControlTopic {
        var found = try await read(log)
        if found.history == nil {
            try accepts(proposed)
            let offset = try await append(.history(proposed), to: log)
            // Two processes may find an empty log at once; the second must notice.
            found = try await read(log, through: offset)
        }
        guard let history = found.history else { throw ControlError.historyLost }
        try check(history, against: proposed)
        try accepts(history)
        return ControlTopic(history, found)
    }

    /// Reads `control` for a command that works on any history, whatever is configured.
    ///
    /// - Throws: ``ControlError/noHistory`` where there is none; `ChangeLogError`.
    package static func existing(in log: some ChangeLog) async throws -> ControlTopic {
        let found = try await read(log)
        guard let history = found.history else { throw ControlError.noHistory }
        guard history.partitionFunction.utf8.elementsEqual(Partitioning.functionName.utf8) else {
            throw ControlError.otherPartitionFunction(history.partitionFunction)
        }
        return ControlTopic(history, found)
    }

    /// Makes the declared tables the newest schema version, unless they are it already, and makes it known here.
    ///
    /// Any number of processes may register at once: the first record of a number counts, and the others evolve from it, under
    /// the next number. For a process whose stages do not run yet: running ones learn a version through
    /// ``follow(_:retryDelay:checkInterval:clock:logger:checked:prepare:)``, once the process is ready for it.
    ///
    /// - Parameter prepare: called before a version is written, with it as the newest; calls its second argument to write it,
    ///   which returns false where another process's version was first: then it is called again with that one before its own.
    /// - Throws: ``ControlError/incompatibleSchema(_:)`` when the tables would lose data of the newest version; what else
    ///   is wrong with `control`; `ChangeLogError`, after which repeating the call is harmless; what `prepare` throws.
    @discardableResult
    package func register(
        _ declared: [Table], in log: some ChangeLog,
        preparing prepare: (SchemaHistory, _ write: @escaping @Sendable () async throws -> Bool) async throws -> Void =
            {
                _ = try await $1()
            }
    ) async throws -> SchemaHistory.Entry {
        var view = try await Self.read(log, after: view.withLock { $0 })
        while true {
            let evolved = try view.schemas.evolved(to: declared)
            guard let entry = evolved.newest else { preconditionFailure("an evolved history has a version") }
            if evolved.entries.count == view.schemas.entries.count {
                adopt(view)
                return entry
            }
            let written = Mutex(view)
            do {
                try await prepare(evolved) { [before = view] in
                    let offset = try await Self.append(.schema(entry), to: log)
                    let after = try await Self.read(log, after: before, through: offset)
                    written.withLock { $0 = after }
                    // Else another process's record of this number was first.
                    return after.schemas[entry.version.ordinal] == entry
                }
            } catch {
                // Another process may have registered a version meanwhile, or this one's may have been written after all.
                guard !Task.isCancelled, let after = await Self.readIfPossible(log, after: view),
                    after.schemas.entries.count > view.schemas.entries.count
                else { throw error }
                view = after
                continue
            }
            view = written.withLock { $0 }
            if view.schemas[entry.version.ordinal] == entry {
                adopt(view)
                return entry
            }
        }
    }

    /// Writes the decision to leave a record out, and makes it known here.
    ///
    /// - Parameters:
    ///   - position: a record that the caller has seen to be one that no worker can process, with ``schemas``.
    ///   - reason: why, 1 to ``SkippedRecord/maximumReasonLength`` bytes.
    /// - Returns: the decision about the record that counts, which may be an earlier one.
    /// - Throws: ``ControlError/overtakenDecision`` where a schema version was registered meanwhile; what else is wrong with
    ///   `control`; `ChangeLogError`, after which repeating the call is harmless.
    package func skip(
        _ position: SkippedRecord.Position, reason: String, in log: some ChangeLog
    ) async throws -> SkippedRecords.Entry {
        let before = view.withLock { $0 }
        let decision = SkippedRecord(position, reason: reason, schemaVersions: before.schemas.entries.count)
        let offset = try await Self.append(.skip(decision), to: log)
        let after = try await Self.read(log, after: before, through: offset)
        adopt(after)
        guard let entry = after.skipped[position.source, position.partition, position.offset] else {
            throw ControlError.overtakenDecision
        }
        return entry
    }

    /// `nil` where the topic cannot be read, for a caller that has an error to report already.
    private static func readIfPossible(_ log: some ChangeLog, after view: ControlView) async -> ControlView? {
        do { return try await read(log, after: view) } catch { return nil }
    }

    private func adopt(_ found: ControlView) {
        view.withLock { if $0.nextOffset < found.nextOffset { $0 = found } }
        known.learn(found.schemas, leavingOut: found.skipped)
        devices.learn(found.revoked)
    }

    // MARK: The topic

    static let partition = TopicPartition(.control, 0)

    /// Reads the records after those read before, up to the topic's present end.
    ///
    /// - Parameter appended: the offset of a record that was appended; it is waited for, even after the end that the log names.
    static func read(
        _ log: some ChangeLog, after known: ControlView? = nil, through appended: Int64? = nil
    ) async throws -> ControlView {
        let range = try await log.range(of: partition)
        var view = known ?? ControlView(from: range.start)
        let end = max(range.end, appended.map { $0 + 1 } ?? 0)
        guard end > view.nextOffset else { return view }
        let reader = try await log.reader(of: partition, from: view.nextOffset)
        let result = await Result.capturing {
            while view.nextOffset < end {
                for record in try await reader.next(maximumBytes: 1 << 20) {
                    do throws(ControlError) {
                        _ = try view.take(record)
                    } catch {
                        // Neither a history nor a schema version: written by a newer process, which says when that is safe.
                        guard case .unreadableRecord = error, !view.pass(record) else { throw error }
                    }
                }
            }
        }
        await reader.close()
        try result.get()
        return view
    }

    private static let appendLimit = Duration.seconds(20)

    /// - Returns: the record's offset.
    private static func append(_ record: ControlRecord, to log: some ChangeLog) async throws -> Int64 {
        try await append([record], to: log)
    }

    /// - Returns: the last record's offset.
    static func append(_ records: [ControlRecord], to log: some ChangeLog) async throws -> Int64 {
        let news = records.map { record in
            let key = record.key(distinguishedBy: String(UInt64.random(in: .min ... .max), radix: 16))
            return NewRecord(to: partition, key: key, value: record.encode())
        }
        let producer = try await log.producer()
        let result = await Result.capturing { try await producer.enqueue(news) }
        // Tables may be locked meanwhile.
        await producer.close(within: appendLimit)
        guard let offset = try await result.get().offsets().last else {
            throw ChangeLogError(.other, partition: partition, message: "the log gave no offset for a record")
        }
        return offset
    }

    private static func check(_ history: History, against proposed: History) throws {
        if history.partitions != proposed.partitions {
            throw ControlError.otherPartitionCount(recorded: history.partitions, configured: proposed.partitions)
        }
        if !history.partitionFunction.utf8.elementsEqual(proposed.partitionFunction.utf8) {
            throw ControlError.otherPartitionFunction(history.partitionFunction)
        }
        if history.shards != proposed.shards {
            throw ControlError.otherShardCount(recorded: history.shards, configured: proposed.shards)
        }
        if history.recordSize > proposed.recordSize {
            throw ControlError.recordsTooLarge(recorded: history.recordSize, configured: proposed.recordSize)
        }
        if history.clock != proposed.clock {
            throw ControlError.otherClock(recorded: history.clock, configured: proposed.clock)
        }
    }
}
