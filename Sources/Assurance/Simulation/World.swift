import ChangeLog
import FanOut
import Gateway
import MemoryChangeLog
import MemoryRecordStore
import RecordStore
import SyncModel

/// Everything that a run has: log and tables, the processes around them, devices, and those who watch.
final class World: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    let scheduler: Scheduler
    let scenario: Scenario
    let faults: Faults
    let clock: SimulatedClock
    let log: MemoryChangeLog
    private let tables = MemoryTables()
    let store: MemoryRecordStore
    let folder: StreamFolder
    private(set) var audit: LogAudit!
    private(set) var streams: StreamModel!
    private(set) var violation: Violation?
    private var groups: [Topic: SimulatedGroup] = [:]
    private var roles: [Role] = []
    private(set) var devices: [SimulatedDevice] = []
    /// Whether the play has ended.
    var isOver = false
    /// How many more things devices do.
    var actionsLeft: Int
    private var earlierTables: MemoryTables?
    private var isRemoving = false
    /// How far the log's clock is from the run's: set back at times, as machines' clocks are.
    private let skew: Skew

    var dice: SeededGenerator { scheduler.dice }

    /// The log's clock: microseconds since 1970.
    var logTime: Int64 { skew.time(at: scheduler.now) }

    init(_ scheduler: Scheduler, actions: Int, folder: StreamFolder) {
        actionsLeft = actions
        let dice = scheduler.dice
        self.scheduler = scheduler
        scenario = Scenario(dice)
        faults = Faults(dice)
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

    /// Lets a line be read by whoever looks into a failed run.
    func note(_ line: @autoclosure () -> String) { scheduler.note(line()) }

    /// An invariant did not hold: the run ends.
    func fail(_ invariant: Violation.Invariant, _ message: @autoclosure () -> String) {
        if violation == nil { violation = Violation(invariant: invariant, message: message()) }
    }

    /// Ends the run if an invariant did not hold.
    func requireOrder() throws { if let violation { throw violation } }

    /// A message's way from or to a process: takes as long as the seed has it, nothing for a dead one.
    func travel(_ process: SimulatedProcess?) async {
        guard process?.isAlive ?? true else { return }
        if scenario.longestTravel == .zero || dice.once(in: 3) { return }
        await pause(upTo: scenario.longestTravel)
    }

    /// Waits, however the caller's task stands: what is on its way arrives.
    func pause(upTo longest: Duration) async {
        let time = scheduler.now + dice.delay(upTo: longest)
        await withCheckedContinuation { continuation in
            _ = scheduler.schedule(at: time) { continuation.resume() }
        }
    }

    // MARK: Processes

    func group(_ name: String, of topic: Topic) -> SimulatedGroup {
        if let known = groups[topic] { return known }
        let made = SimulatedGroup(topic: topic, partitionCount: scenario.partitions)
        groups[topic] = made
        return made
    }

    /// Starts all of them.
    func startRoles() {
        roles = [
            (Role.Kind.fanOut, scenario.fanOuts), (.ordering, scenario.orderings), (.ingest, scenario.ingests),
            (.gateway, scenario.gateways),
        ].flatMap { kind, count in (1...count).map { Role(kind, $0, self) } }
        for role in roles { role.start() }
    }

    /// One of the fan-outs that run, as a connection would find it.
    func anyFanOut() -> FanOut<SimulatedLog, SimulatedStore>? {
        let running = runningFanOuts
        return running.isEmpty ? nil : dice.pick(running)
    }

    /// Those that run.
    var runningFanOuts: [FanOut<SimulatedLog, SimulatedStore>] { roles.compactMap(\.fanOut) }

    /// One of the gateways that run.
    func anyGateway() -> (SimulatedProcess, SimulatedGateway)? {
        let running = roles.compactMap(\.gateway)
        return running.isEmpty ? nil : dice.pick(running)
    }

    /// What comes between two steps.
    func next() throws {
        try requireOrder()
        // What retention takes must have been looked at.
        if isRemoving { audit.catchUp() }
        if faults.areOn, let shocks = faults.shocks, dice.once(in: shocks), !roles.isEmpty { shock() }
    }

    /// Something happens to a process, to the log or to the tables.
    private func shock() {
        switch dice.number(0...19) {
        case 0...8: dice.pick(roles).crash()
        case 9...11: dice.pick(roles).fallSilent()
        case 12: dice.pick(roles).restart()
        case 13: skew.change(by: .milliseconds(dice.number(-3000...3000)))
        case 14...15: failAppend()
        case 16: stallLog()
        case 17: removeResults()
        default: fallBack()
        }
    }

    private func failAppend() {
        let isStored = dice.once(in: 2)
        note("the next append fails, and is \(isStored ? "" : "not ")stored")
        log.failNextAppend(
            ChangeLogError(.inputOutput, message: "the log could not write", isRetriable: true), isStored: isStored)
    }

    private func stallLog() {
        note("the log stalls")
        log.pause()
        _ = scheduler.schedule(at: scheduler.now + dice.delay(upTo: .seconds(15))) { [log] in log.resume() }
    }

    /// Retention takes old results: streams that had not come so far are made again from the tables.
    private func removeResults() {
        let age = dice.delay(upTo: .seconds(10))
        let (seconds, attoseconds) = age.components
        let time = logTime - seconds * 1_000_000 - attoseconds / 1_000_000_000_000
        note("results older than \(age) are removed")
        isRemoving = true
        Task {
            do {
                try await log.removeRecords(of: .ordered, before: time)
            } catch {
                fail(.progress, "results cannot be removed: \(error)")
            }
            isRemoving = false
        }
    }

    /// The tables lose their newest transactions, or are kept as they are to be what they fall back to.
    private func fallBack() {
        if let earlier = earlierTables.take() {
            note("the tables fall back")
            tables.fallBack(to: earlier)
            // Their workers begin again, as a supervisor has it: one that had nothing to write would not notice.
            for role in roles where role.writesTables { role.crash() }
        } else {
            earlierTables = tables.copy()
            _ = scheduler.schedule(at: scheduler.now + .seconds(3)) { [self] in earlierTables = nil }
        }
    }

    /// Has groups look at who has gone silent or come back.
    func dropSilent() {
        for topic in [Topic.uploads, .changes] { groups[topic]?.dropSilent() }
    }

    /// Has every process work again, and no more faults.
    func calm() {
        note("no more faults")
        faults.areOn = false
        log.resume()
        for role in roles { role.recover() }
    }

    /// Ends all processes in order.
    func stopRoles() async {
        for role in roles.reversed() { await role.end() }
    }

    // MARK: What is watched

    /// A group's worker has committed an offset.
    func committed(_ offset: Int64, of partition: TopicPartition) {
        guard partition.topic == .uploads else { return }
        audit.catchUp()
        audit.requireParts(before: offset, of: partition.partition)
    }

    /// A step was written to the tables.
    func wrote(_ step: StoreStep, by process: SimulatedProcess) {
        audit.catchUp()
        note("tables[\(step.partition)]: \(process.name) writes up to changes \(step.position.state.nextOffset)")
        guard let end = audit.orderedEnd(behind: step.position.state.nextOffset, of: step.partition),
            end <= step.position.orderedOffset || step.position.orderedOffset == 0 && end == 0
        else {
            return fail(
                .publishThenWrite,
                "the tables of partition \(step.partition) stand at changes \(step.position.state.nextOffset) and ordered "
                    + "\(step.position.orderedOffset), where their results are not complete")
        }
        let ordered = audit.orderedEnd(of: step.partition)
        if step.position.orderedOffset > ordered {
            fail(
                .publishThenWrite,
                "the tables stand at ordered \(step.position.orderedOffset), which ends at \(ordered)")
        }
        for row in step.rows where !streams.has(row) {
            fail(.publishThenWrite, "the tables hold \(row), which no result has")
        }
    }
}

/// The difference between the run's time and the log's.
final class Skew: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    private var offset: Duration = .zero

    /// 2026-01-01, in microseconds since 1970.
    private static let start: Int64 = 1_767_225_600_000_000

    func change(by duration: Duration) { offset += duration }

    /// Microseconds since 1970.
    func time(at now: Duration) -> Int64 {
        let (seconds, attoseconds) = (now + offset).components
        return Self.start + seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}
