import DeviceModel
import Glibc
import KafkaChangeLog
import LoadTools
import SyncModel
import Synchronization
import TopicAudit

/// One run: starts a cluster, lets devices write while faults happen, repairs everything and judges.
struct ChaosRun: Sendable {
    struct Options: Sendable {
        var goal = RunState.Goal.changes(100_000)
        var seed: UInt64
        var faultsPerMinute = 20
        var owners = 8
        /// Devices of each owner.
        var devices = 4
        /// Changes of a batch.
        var batch = 1...100
        /// Ids of each table and owner.
        var rows = 200
        /// Seconds that everything may take to become ready, settle and drain after the faults.
        var healing = 300
        var cluster: ChaosCluster.Options
    }

    let options: Options
    let folder: WorkFolder
    let state: RunState
    let interruption: ChaosInterruption
    /// Gets a line of progress now and then.
    let progress: @Sendable (String) -> Void

    init(
        _ options: Options, in folder: WorkFolder, _ interruption: ChaosInterruption,
        progress: @escaping @Sendable (String) -> Void
    ) throws {
        self.options = options
        self.folder = folder
        self.interruption = interruption
        self.progress = progress
        state = RunState(options.goal, try EventLog(folder.path + "/events.log"))
    }

    func play() async throws -> ChaosReport {
        let supervision = Supervision(state)
        let cluster = try await ChaosCluster.start(options.cluster, in: folder, state.events) { member, status in
            supervision.ended(member, status)
        }
        interruption.set {
            cluster.killMembers()
            state.expire(after: 0)
        }
        do {
            let report = try await play(on: cluster, supervision)
            try await cluster.end(keepsLogs: !report.isSound)
            return report
        } catch {
            supervision.stop()
            try await cluster.end(keepsLogs: true)
            throw error
        }
    }

    private func play(on cluster: ChaosCluster, _ supervision: Supervision) async throws -> ChaosReport {
        let unready = try await cluster.untilReady(seconds: options.healing)
        guard unready.isEmpty else {
            throw LoadFailure("the cluster did not become ready: \(unready.joined(separator: "; "))")
        }
        state.events.record("every process is ready")
        let plan = DevicePlan(
            gateways: cluster.gatewayPorts, tokens: cluster.tokens, schema: cluster.tables.schema, batch: options.batch,
            rows: options.rows)
        let devices = makeDevices(plan)
        let revoked = makeRevoked(plan)
        let player = FaultPlayer(cluster, state)
        state.begin()
        let rotation = Task { try await rotateKeys(of: cluster.tokens) }
        defer { rotation.cancel() }
        let writers = devices + revoked.map(\.device)
        let writing = Task { try await LoadThreads.run(writers.count) { writers[$0].write() } }
        let refusedAfter = try await revoke(revoked, plan)
        let faults = Task { [state] in
            defer { state.endFaults() }
            if options.goal == .killsInTurn {
                try await player.playInTurn()
            } else {
                try await player.play(seed: options.seed, perMinute: options.faultsPerMinute)
            }
        }
        while !state.isDone {
            try interruption.check()
            try await Task.sleep(for: .seconds(1))
            let (changes, batches) = state.progress
            progress(
                "\(Int(state.seconds)) s, \(changes) changes in \(batches) batches, \(player.played.values.reduce(0, +)) faults"
            )
        }
        state.events.record("enough is written: no more faults")
        faults.cancel()
        try await faults.value
        try interruption.check()
        state.expire(after: options.healing)
        let healing = SystemCall.nanoseconds()
        for reason in try await cluster.untilReady(seconds: options.healing) {
            state.found(Finding(kind: .notHealed, text: reason))
        }
        _ = try await writing.value
        try interruption.check()
        let seconds = state.seconds
        for device in devices {
            if let batch = device.unsettled {
                state.found(
                    Finding(
                        kind: .notHealed, text: "\(batch) has no outcome \(options.healing) s after the last fault",
                        batch: batch))
            }
        }
        state.events.record("every batch is settled")
        let all = devices + makeFresh(plan)
        try await drain(all, cluster)
        let healed = SystemCall.seconds(since: healing)
        supervision.stop()
        var exits = supervision.exits
        for (member, status) in try await cluster.stopMembers() {
            let text = "\(member.name) at the end: \(Member.text(of: status))"
            exits.append(text)
            if Member.isCrash(status, after: SIGTERM), !member.wasKilled {
                state.found(Finding(kind: .crashed, text: text))
            }
        }
        rotation.cancel()
        let rotations = try await rotation.value
        let judged = try await judge(all, revoked.map(\.device.book), cluster)
        return ChaosReport(
            seed: options.seed, changes: state.progress.changes, batches: state.progress.batches,
            ordered: judged.changes, rotations: rotations, revoked: revoked.count, refusedAfter: refusedAfter,
            rows: judged.rows, repeats: judged.repeats, seconds: seconds, healing: healed,
            faults: player.played, exits: exits, batchWaits: state.waits.batches(),
            pullWaits: state.waits.pulls(), waitsByFault: options.goal == .killsInTurn ? state.waits.byFault() : [],
            findings: state.findings, totalFindings: state.totalFindings)
    }

    /// The devices of all owners; each is linked to the next owner, every third of them without the right to write.
    private func makeDevices(_ plan: DevicePlan) -> [ChaosDevice] {
        let owners = (0..<options.owners).map { SyncID(unchecked: "owner\($0)") }
        return (0..<options.owners * options.devices).map { index in
            let owner = index % owners.count
            let links =
                owners.count > 1 && index % 2 == 0
                ? [(owner: owners[(owner + 1) % owners.count], access: index % 3 == 0 ? "read" : "write")] : []
            return ChaosDevice(
                "k\(index / owners.count + 1)", of: owners[owner], links: links,
                seed: options.seed &* 1_000_003 &+ UInt64(index), plan, state)
        }
    }

    /// A device of each owner that has nothing yet.
    private func makeFresh(_ plan: DevicePlan) -> [ChaosDevice] {
        (0..<options.owners).map {
            ChaosDevice("fresh", of: SyncID(unchecked: "owner\($0)"), links: [], seed: options.seed &+ 7, plan, state)
        }
    }

    /// Another device of each owner, which is revoked while it writes.
    private func makeRevoked(_ plan: DevicePlan) -> [(device: ChaosDevice, revocation: Revocation)] {
        (0..<options.owners).map { index in
            let revocation = Revocation()
            let device = ChaosDevice(
                "lost", of: SyncID(unchecked: "owner\(index)"), links: [],
                seed: options.seed &* 1_000_003 &+ 900_000 &+ UInt64(index), plan, state, revocation: revocation)
            return (device, revocation)
        }
    }

    /// Revokes devices while all write, and lets them try on for longer than they may be accepted.
    ///
    /// - Returns: how many seconds after the revocation a device still sent a request that was accepted.
    private func revoke(
        _ revoked: [(device: ChaosDevice, revocation: Revocation)], _ plan: DevicePlan
    ) async throws -> Double {
        try await Task.sleep(for: .seconds(2))
        try await LoadThreads.run {
            for (index, (device, revocation)) in revoked.enumerated() {
                let client = GatewayClient(plan.gateways) {
                    try plan.tokens.token(device.owner, device: "k1", links: [], scope: "read write devices")
                }
                revocation.requested()
                let response = client.delete("/v1/devices/\(device.name)", at: index % plan.gateways.count)
                revocation.answered()
                guard response?.status == 204 else {
                    throw LoadFailure("a device cannot be revoked: \(response?.text ?? "no answer")")
                }
            }
        }
        state.events.record("\(revoked.count) devices are revoked")
        try await Task.sleep(for: .seconds(Revocation.limit + 2))
        for (device, revocation) in revoked where revocation.end() < plan.gateways.count {
            state.found(
                Finding(kind: .revoked, text: "\(device.owner)/\(device.name) was not refused by every gateway"))
        }
        return revoked.map(\.revocation.lastAccepted).max() ?? 0
    }

    /// Lets the issuer use other keys until the task is cancelled; returns how often it changed them.
    private func rotateKeys(of tokens: TokenIssuer) async throws -> Int {
        var count = 0
        while true {
            do {
                try await Task.sleep(for: .seconds(TokenIssuer.period))
            } catch {
                return count
            }
            try tokens.rotate()
            state.events.record("the issuer signs with another key")
            count += 1
        }
    }

    /// Lets every device pull until it is where Postgres is.
    private func drain(_ devices: [ChaosDevice], _ cluster: ChaosCluster) async throws {
        let end = SystemCall.nanoseconds() + Int64(options.healing) * 1_000_000_000
        while true {
            try interruption.check()
            let drained = try await LoadThreads.run(devices.count) { devices[$0].drain() }
            let heads = try await cluster.tables.heads()
            let behind = zip(devices, drained).filter { device, isDrained in
                !isDrained || device.owners.contains { device.copy.head(of: $0) != heads[$0] ?? 0 }
            }
            if behind.isEmpty { return state.events.record("every device is drained") }
            guard SystemCall.nanoseconds() < end else {
                for (device, isDrained) in behind.prefix(10) {
                    state.found(
                        Finding(
                            kind: .notHealed,
                            text: "\(device.owner)/\(device.name) is not at the end after \(options.healing) s: "
                                + (isDrained ? "its pulls are answered" : "its pulls fail")))
                }
                return
            }
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    private func judge(
        _ devices: [ChaosDevice], _ revoked: [BatchBook], _ cluster: ChaosCluster
    ) async throws -> (changes: Int, rows: Int, repeats: Int) {
        state.events.record("judging the topics")
        var outcomes = OutcomeJudge(devices.map(\.book) + revoked)
        let log = try await KafkaChangeLog(
            KafkaChangeLogConfiguration(
                servers: cluster.brokers.split(separator: ",").map(String.init), topicPrefix: cluster.topicPrefix))
        let audit: TopicAudit
        do {
            audit = try await TopicAudit.read(
                log, partitions: options.cluster.partitions, onPart: { outcomes.take($0) },
                onPiece: { outcomes.take($0, $1) })
        } catch {
            await log.close()
            throw error
        }
        await log.close()
        outcomes.finish()
        for text in audit.findings { state.found(Finding(kind: .order, text: text)) }
        for finding in outcomes.findings { state.found(finding) }
        state.events.record("judging the devices' rows")
        let tables = try await cluster.tables.rows()
        for device in devices {
            let findings = CopyJudge.judge(
                device.copy, of: "\(device.owner)/\(device.name)", owners: device.owners, tables: tables,
                cluster.tables.schema)
            for finding in findings { state.found(finding) }
        }
        state.events.record("weir verify")
        if let difference = try await cluster.verify() { state.found(Finding(kind: .verify, text: difference)) }
        return (outcomes.changes, audit.rows, audit.repeats)
    }
}

/// Restarts processes that end by themselves, as an operator's supervisor does.
final class Supervision: Sendable {
    private struct State {
        var exits: [String] = []
        var isStopped = false
    }

    private let run: RunState
    private let state = Mutex(State())

    init(_ run: RunState) { self.run = run }

    /// The ends that this program did not cause.
    var exits: [String] { state.withLock { $0.exits } }

    func stop() { state.withLock { $0.isStopped = true } }

    func ended(_ member: Member, _ status: Int32) {
        let isStopped = state.withLock { state in
            if !state.isStopped { state.exits.append("\(member.name) by itself: \(Member.text(of: status))") }
            return state.isStopped
        }
        if isStopped { return }
        if Member.isCrash(status) {
            run.found(Finding(kind: .crashed, text: "\(member.name) ended by itself: \(Member.text(of: status))"))
        }
        do {
            try member.start()
        } catch {
            run.found(Finding(kind: .notHealed, text: "\(member.name) cannot be restarted: \(error)"))
        }
    }
}

/// Ends a run early: kills the processes.
final class ChaosInterruption: Sendable {
    private struct State {
        var isRequested = false
        var kill: @Sendable () -> Void = {}
    }

    private let state = Mutex(State())

    func set(_ kill: @escaping @Sendable () -> Void) { state.withLock { $0.kill = kill } }

    func request() {
        let kill = state.withLock { state in
            state.isRequested = true
            return state.kill
        }
        kill()
    }

    func check() throws {
        if state.withLock({ $0.isRequested }) { throw LoadFailure("interrupted") }
    }
}
