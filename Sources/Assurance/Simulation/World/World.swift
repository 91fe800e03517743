import ChangeLog
import DeviceModel
import FanOut
import FanOutLink
import Gateway
import MemoryChangeLog
import MemoryRecordStore
import RecordStore
import SyncModel

/// Everything in a run: log and tables, the processes around them, devices, and the checks.
final class World: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    let scheduler: Scheduler
    let scenario: Scenario
    let faults: Faults
    let clock: SimulatedClock
    let issuer = SimulatedIssuer()
    let log: MemoryChangeLog
    private let tables = MemoryTables()
    let store: MemoryRecordStore
    let folder: StreamFolder
    private(set) var audit: LogAudit!
    private(set) var streams: StreamModel!
    private(set) var violation: Violation?
    private var groups: [Topic: SimulatedGroup] = [:]
    private(set) var roles: [Role] = []
    private(set) var devices: [SimulatedDevice] = []
    var isOver = false
    /// Whether a timer is always near, and there are no faults.
    var isTicking = false
    /// When the tables take transactions again.
    private var tablesStallUntil: Duration = .zero
    /// Actions that devices have left.
    var actionsLeft: Int
    /// How many of the scenario's schema versions `control` has.
    var registered = 1
    /// Counts the streams that were opened, rebuilt or found damaged.
    var streamChanges = 0
    private var subscriptions: [LinkSubscription] = []
    private var earlierTables: MemoryTables?
    /// The difference between the log's clock and the run's; a fault changes it.
    private let skew: Skew

    var random: SeededGenerator { scheduler.random }

    /// The log's clock: microseconds since 1970.
    var logTime: Int64 { skew.time(at: scheduler.now) }

    init(_ scheduler: Scheduler, actions: Int, folder: StreamFolder) {
        actionsLeft = actions
        let random = scheduler.random
        self.scheduler = scheduler
        scenario = Scenario(random)
        faults = Faults(random)
        clock = SimulatedClock(scheduler: scheduler)
        self.folder = folder
        store = MemoryRecordStore(tables)
        let skew = Skew()
        self.skew = skew
        log = MemoryChangeLog(
            MemoryLogContents(partitionCount: scenario.partitions), clock: { skew.time(at: scheduler.now) })
        audit = LogAudit(self)
        streams = StreamModel(self)
        for owner in scenario.owners {
            for number in 1...scenario.devicesOfOwner {
                devices.append(SimulatedDevice("\(owner)\(number)", of: owner, self))
            }
        }
    }

    func record(_ line: @autoclosure () -> String) { scheduler.record(line()) }

    /// Ends the run with an invariant that did not hold; the first counts.
    func fail(_ invariant: Violation.Invariant, _ message: @autoclosure () -> String) {
        if violation == nil { violation = Violation(invariant: invariant, message: message()) }
    }

    func requireInvariants() throws { if let violation { throw violation } }

    /// Delays a request or an answer of a process; a dead process is not waited for.
    func delay(_ process: SimulatedProcess?) async {
        guard process?.isAlive ?? true else { return }
        if scenario.longestDelay == .zero || random.once(in: 3) { return }
        await pause(upTo: scenario.longestDelay)
    }

    /// Waits, also in a cancelled task: what was sent arrives.
    func pause(upTo longest: Duration) async {
        let time = scheduler.now + random.delay(upTo: longest)
        await withCheckedContinuation { continuation in
            _ = scheduler.schedule(at: time) { continuation.resume() }
        }
    }

    /// Waits for a time.
    func sleep(_ time: Duration) async {
        let end = scheduler.now + time
        await withCheckedContinuation { continuation in
            _ = scheduler.schedule(at: end) { continuation.resume() }
        }
    }

    // MARK: Processes

    func group(_ name: String, of topic: Topic) -> SimulatedGroup {
        if let known = groups[topic] { return known }
        let made = SimulatedGroup(topic: topic, partitionCount: scenario.partitions)
        groups[topic] = made
        return made
    }

    func startRoles() {
        roles = [
            (Role.Kind.fanOut, scenario.fanOuts), (.ordering, scenario.orderings), (.ingest, scenario.ingests),
            (.gateway, scenario.gateways),
        ].flatMap { kind, count in (1...count).map { Role(kind, $0, self) } }
        for role in roles { role.start() }
    }

    func anyFanOut() -> FanOut<SimulatedLog, SimulatedStore>? {
        let running = runningFanOuts
        return running.isEmpty ? nil : random.pick(running)
    }

    var runningFanOuts: [FanOut<SimulatedLog, SimulatedStore>] { roles.compactMap(\.fanOut) }

    /// Subscribes to the fan-outs that run and to those that start later.
    func subscribe(to owners: [SyncID], moved: @escaping @Sendable (SyncID, TimeStamp) -> Void) -> LinkSubscription {
        let subscription = LinkSubscription(to: owners, moved: moved)
        for stage in runningFanOuts { subscription.add(stage) }
        subscriptions.removeAll(where: \.isCancelled)
        subscriptions.append(subscription)
        return subscription
    }

    func started(_ stage: FanOut<SimulatedLog, SimulatedStore>) {
        subscriptions.removeAll(where: \.isCancelled)
        for subscription in subscriptions { subscription.add(stage) }
    }

    /// Reports to every gateway what can be pulled.
    func passed(_ report: StreamReport) {
        for (_, gateway) in roles.compactMap(\.gateway) { gateway.backlog?.passed(report) }
    }

    func anyGateway() -> (SimulatedProcess, SimulatedGateway)? {
        let running = roles.compactMap(\.gateway)
        return running.isEmpty ? nil : random.pick(running)
    }

    /// Runs between two steps: injects faults.
    func beforeStep() throws {
        try requireInvariants()
        registerSchemaAtTimes()
        if faults.areOn, let interval = faults.interval, random.once(in: interval), !roles.isEmpty { injectFault() }
    }

    private func injectFault() {
        switch random.number(0...22) {
        case 0...8: random.pick(roles).crash()
        case 9...11: random.pick(roles).becomeStale()
        case 12: random.pick(roles).restart()
        case 13: skew.change(by: .milliseconds(random.number(-3000...3000)))
        case 14...15: failAppend()
        case 16: stallLog()
        case 17: removeResults()
        case 18...20: stallTables()
        default: fallBack()
        }
    }

    private func failAppend() {
        let isStored = random.once(in: 2)
        record("the next append fails, and is \(isStored ? "" : "not ")stored")
        log.failNextAppend(
            ChangeLogError(.inputOutput, message: "the log could not write", isRetriable: true), isStored: isStored)
    }

    private func stallLog() {
        record("the log stalls")
        log.pause()
        _ = scheduler.schedule(at: scheduler.now + random.delay(upTo: .seconds(15))) { [log] in log.resume() }
    }

    private func stallTables() {
        record("the tables stall")
        tablesStallUntil = scheduler.now + random.delay(upTo: .seconds(15))
    }

    /// Waits while the tables take no transactions.
    func waitForTables() async {
        while faults.areOn, scheduler.now < tablesStallUntil { await sleep(.milliseconds(100)) }
    }

    /// Retention removes old results: streams that have not read them are rebuilt from the tables.
    private func removeResults() {
        let age = random.delay(upTo: .seconds(10))
        let (seconds, attoseconds) = age.components
        let time = logTime - seconds * 1_000_000 - attoseconds / 1_000_000_000_000
        record("results older than \(age) are removed")
        // Records must be checked before they are removed.
        audit.catchUp()
        let floors = Dictionary(
            uniqueKeysWithValues: (0..<scenario.partitions).map { ($0, audit.orderedEnd(of: $0)) })
        Task {
            do {
                try await log.removeRecords(of: .ordered, before: time, floors: floors)
            } catch {
                fail(.progress, "results cannot be removed: \(error)")
            }
        }
    }

    /// The tables lose their newest transactions, or are copied to fall back to.
    private func fallBack() {
        if let earlier = earlierTables.take() {
            record("the tables fall back")
            tables.fallBack(to: earlier)
            // Their workers restart, as under a supervisor: one that has nothing to write would not notice.
            for role in roles where role.writesTables { role.crash() }
        } else {
            earlierTables = tables.copy()
            _ = scheduler.schedule(at: scheduler.now + .seconds(3)) { [self] in earlierTables = nil }
        }
    }

    /// Has the groups drop members that have become stale, and readmit those that no longer are.
    func dropStale() {
        for topic in [Topic.uploads, .changes] { groups[topic]?.dropStale() }
    }

    /// Ends the faults and restarts dead processes.
    func endFaults() {
        record("no more faults")
        faults.areOn = false
        log.resume()
        for role in roles { role.recover() }
    }

    func stopRoles() async {
        for role in roles.reversed() { await role.end() }
    }

    // MARK: Checks

    func committed(_ offset: Int64, of partition: TopicPartition) {
        guard partition.topic == .uploads else { return }
        audit.catchUp()
        audit.requireParts(before: offset, of: partition.partition)
    }

    func wrote(_ step: StoreStep, by process: SimulatedProcess) {
        audit.catchUp()
        record("tables[\(step.partition)]: \(process.name) writes up to changes \(step.position.state.nextOffset)")
        let (next, position) = (step.position.state.nextOffset, step.position.orderedOffset)
        guard audit.hasResults(before: next, of: step.partition) else {
            return fail(
                .publishThenWrite,
                "the tables of partition \(step.partition) are at offset \(next) of changes, where results are missing")
        }
        if let start = audit.resultsStart(from: next, of: step.partition), start < position {
            fail(
                .publishThenWrite,
                "the tables of partition \(step.partition) are at offset \(next) of changes and \(position) of ordered, which has "
                    + "later results from \(start) on")
        }
        let ordered = audit.orderedEnd(of: step.partition)
        if step.position.orderedOffset > ordered {
            fail(
                .publishThenWrite,
                "the tables are at offset \(step.position.orderedOffset) of ordered, which ends at \(ordered)")
        }
        for row in step.rows where !streams.has(row) {
            fail(.publishThenWrite, "the tables have \(row), which no result has")
        }
    }
}
