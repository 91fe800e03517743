import ChangeLog
import Configuration
import DeviceModel
import FanOut
import FanOutLink
import MemoryChangeLog
import MemoryRecordStore
import Observability
import Ordering
import PartitionSupervision
import RecordStore
import SyncModel
import SyncWire
import Synchronization

extension World {
    /// Runs devices among faults, then ends the faults, waits until everything is at rest, and checks it.
    func play() async {
        do {
            try await store.prepare(schemas, epoch: scenario.history.epoch)
        } catch {
            fail(.progress, "the tables could not be created: \(error)")
        }
        startRoles()
        await withTaskGroup(of: Void.self) { group in
            for device in devices {
                group.addTask { [self] in
                    while actionsLeft > 0, violation == nil {
                        actionsLeft -= 1
                        await device.act()
                    }
                }
            }
        }
        endFaults()
        registerSchemas()
        await settle()
        await withTicks {
            await playPolls()
            // With the longest delays, the end of the log is not known in less time.
            let mustAnswer = scenario.outcomeWait >= .seconds(10)
            for device in devices where violation == nil {
                await device.probe(mustAnswer: mustAnswer)
                await device.lookUpWithoutLinks()
            }
        }
        await settle()
        if violation == nil { await checkTables() }
        await stopRoles()
        if violation == nil { await replay() }
        await log.close()
    }

    private func settle() async {
        for round in 1...2 {
            for device in devices {
                await until("\(device.name) is drained") { await device.drain() }
            }
            if round == 1 { await until("everything is ordered, written and in the streams") { await self.isQuiet() } }
        }
        guard violation == nil else { return }
        for device in devices { device.checkEnd() }
        for partition in 0..<scenario.partitions {
            audit.requireParts(before: Int64(audit.uploadCount(of: partition)), of: partition)
        }
    }

    /// Waits for something that must happen once faults have ended.
    func until(_ what: String, _ condition: () async -> Bool) async {
        record("waits: \(what)")
        for attempt in 0..<200 {
            if violation != nil { return }
            if await condition() { return }
            // As clients do: with the longest delays the repeats of a batch would come as fast as they are ordered.
            await pause(upTo: .seconds(attempt < 50 ? 1 : 20))
        }
        fail(.progress, "\(what): this does not happen")
    }

    /// Whether every upload is admitted, ordered, written and in every fan-out: a device may pull from any.
    func isQuiet() async -> Bool {
        audit.catchUp()
        guard areSchemasKnown else { return false }
        for partition in 0..<scenario.partitions {
            let end = log.records(of: TopicPartition(.changes, partition), from: 0).count
            do {
                let position = try await store.position(of: partition)?.state.nextOffset ?? 0
                if audit.isAdmitted(partition), audit.isDecided(partition), position == Int64(end) { continue }
                record(
                    "partition \(partition): admitted \(audit.isAdmitted(partition)), decided "
                        + "\(audit.isDecided(partition)), tables at \(position) of \(end)")
            } catch {
                fail(.progress, "the tables cannot be read: \(error)")
            }
            return false
        }
        guard runningFanOuts.count == scenario.fanOuts else { return false }
        for fanOut in runningFanOuts {
            do throws(FanOutError) {
                guard try await fanOut.heads(of: scenario.owners) == scenario.owners.map(streams.head) else {
                    return false
                }
            } catch {
                // The partition is not served yet.
                return false
            }
        }
        return true
    }

    /// The tables have every row as the results do.
    private func checkTables() async {
        for partition in 0..<scenario.partitions {
            let tables = await Tables(of: partition, in: store)
            for row in tables.rows where audit.model.rows[row.key].map({ $0.state.timeStamp }) != row.timeStamp {
                return fail(.publishThenWrite, "the tables have \(row), which is not the newest")
            }
            let expected = audit.model.rows.values.count { self.partition(of: $0.state.key.owner) == partition }
            if tables.rows.count != expected {
                fail(.publishThenWrite, "the tables have \(tables.rows.count) rows of \(expected)")
            }
            for stored in tables.usage where stored.usage != audit.model.usage(of: stored.owner) {
                fail(.limits, "the tables have \(stored) as the usage, not \(audit.model.usage(of: stored.owner))")
            }
        }
    }

    private func partition(of owner: SyncID) -> Int { Partitioning(count: scenario.partitions).partition(of: owner) }

    /// Orders `changes` again up to the tables' position, into empty tables and in steps of other sizes, and compares.
    private func replay() async {
        let again = MemoryChangeLog(MemoryLogContents(partitionCount: scenario.partitions), clock: { 0 })
        let tables = MemoryRecordStore()
        let schemas = scenario.schemas
        let stage = OrderingService(
            StageContext(log: again, history: scenario.history, schemas: KnownSchemas(schemas), clock: clock),
            store: tables, configuration: OrderingConfiguration().with(\.stepBytes, random.pick([1024, 3000, 1 << 20])))
        var ends: [Int64] = []
        do {
            try await tables.prepare(schemas, epoch: scenario.history.epoch)
            let producer = try await again.producer()
            for partition in 0..<scenario.partitions {
                let topic = TopicPartition(.changes, partition)
                let end = try await store.position(of: partition)?.state.nextOffset ?? 0
                ends.append(end)
                let records = log.records(of: topic, from: 0).filter { $0.offset < end }.map {
                    NewRecord(to: topic, key: $0.key, value: $0.value)
                }
                if !records.isEmpty { try await producer.append(records) }
            }
            await producer.close()
        } catch {
            return fail(.sameBytes, "changes cannot be copied: \(error)")
        }
        let work = Task { try await stage.run() }
        await until("changes are ordered again") {
            for (partition, end) in ends.enumerated() {
                do {
                    let position = try await tables.position(of: partition)
                    if position?.state.nextOffset ?? 0 != end { return false }
                } catch {
                    fail(.sameBytes, "the tables of a replay cannot be read: \(error)")
                    return true
                }
            }
            return true
        }
        work.cancel()
        _ = await work.result
        for partition in 0..<scenario.partitions {
            let records = again.records(of: TopicPartition(.ordered, partition), from: 0)
            for record in records {
                guard let piece = try? OrderedPiece(decoding: record.value),
                    audit.piece(piece, of: partition) == record.value
                else { return fail(.sameBytes, "ordered[\(partition)] \(record.offset) of a replay differs") }
            }
            if records.count != audit.pieceCount(of: partition, before: ends[partition]) {
                fail(.sameBytes, "a replay of partition \(partition) has \(records.count) results")
            }
            let (first, second) = (
                await Tables(of: partition, in: store),
                await Tables(of: partition, in: tables)
            )
            if first != second { fail(.sameBytes, "a replay of partition \(partition) has other tables") }
        }
        await again.close()
    }
}

private struct Tables: Equatable {
    private(set) var rows: [OrderedRow] = []
    private var outcomes: [StoredOutcome] = []
    private(set) var usage: [StoredUsage] = []
    private var applied: [AppliedChangeKey: AppliedChange] = [:]
    private var state: PartitionState?

    init(of partition: Int, in store: MemoryRecordStore) async {
        let chunks = Mutex<[SnapshotChunk]>([])
        do {
            let ordinal = try await store.position(of: partition)?.state.schemaOrdinal ?? 0
            try await store.snapshot(of: partition, schemaOrdinal: ordinal) { chunk in
                chunks.withLock { $0.append(chunk) }
            }
            let changes = Mutex<[StoredAppliedChange]>([])
            try await store.appliedChanges(of: partition) { more in changes.withLock { $0 += more } }
            for stored in changes.withLock({ $0 }) { applied[stored.changeKey] = stored.change }
        } catch {
            // Left empty, which differs from what is expected.
            return
        }
        for chunk in chunks.withLock({ $0 }) {
            switch chunk {
            case .position(let position): state = position.state
            case .rows(let more): rows += more
            case .outcomes(let more): outcomes += more
            case .usage(let more): usage += more
            }
        }
    }
}
