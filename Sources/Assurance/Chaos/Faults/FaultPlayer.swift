import Glibc
import KafkaServer
import PostgresServer
import Synchronization

/// Disturbs a cluster until it is told to stop, and then repairs everything.
final class FaultPlayer: Sendable {
    private let cluster: ChaosCluster
    private let run: RunState
    private let busy = Mutex<Set<Fault.Target>>([])
    /// How many faults of each kind were played, by target and kind.
    private let counts = Mutex<[String: Int]>([:])

    init(_ cluster: ChaosCluster, _ run: RunState) {
        self.cluster = cluster
        self.run = run
    }

    var played: [String: Int] { counts.withLock { $0 } }

    /// Plays faults, several at a time, until the task is cancelled; returns when all have ended.
    ///
    /// The second fault of a target that is disturbed already is left out.
    func play(seed: UInt64, perMinute: Int) async throws {
        let plan = FaultPlan(
            seed: seed, perMinute: perMinute,
            .init(
                proxies: cluster.members.map(\.proxies.count), hasBroker: cluster.kafka != nil,
                hasDatabase: cluster.postgres != nil))
        try await withThrowingTaskGroup(of: Void.self) { group in
            while let (pause, fault) = plan.next() {
                do {
                    try await Task.sleep(for: .milliseconds(pause))
                } catch {
                    break
                }
                guard busy.withLock({ $0.insert(fault.target).inserted }) else { continue }
                // The faults under way end in their time also when this task is cancelled.
                let playing = Task { try await self.play(fault) }
                group.addTask { try await playing.value }
            }
            try await group.waitForAll()
        }
    }

    /// Kills every process in turn, until all were or the task is cancelled.
    func playInTurn() async throws {
        // After the last one, too, whose waits end meanwhile.
        for fault in FaultPlan.inTurn(processes: cluster.members.count) + [nil] {
            do {
                try await Task.sleep(for: .milliseconds(FaultPlan.pauseInTurn))
            } catch {
                return
            }
            if let fault { try await Task { try await self.play(fault) }.value }
        }
    }

    private func play(_ fault: Fault) async throws {
        let (name, subject) = text(of: fault)
        let isWrong = fault.kind == .delay ? ", \(fault.delay) ms" : ""
        run.events.record("FAULT \(name)\(isWrong) for \(fault.milliseconds) ms")
        let span = run.waits.begin(name)
        counts.withLock { $0["\(subject) \(fault.kind.rawValue)", default: 0] += 1 }
        try await apply(fault)
        run.waits.end(span)
        run.events.record("END of \(name)")
        busy.withLock { _ = $0.remove(fault.target) }
    }

    private func apply(_ fault: Fault) async throws {
        func pause() async throws { try await Task.sleep(for: .milliseconds(fault.milliseconds)) }
        switch fault.target {
        case .proxy(let member, let index):
            let proxy = cluster.members[member].proxies[index].proxy
            switch fault.kind {
            case .refuse: proxy.set(.refuse)
            case .delay: proxy.set(.delay(milliseconds: fault.delay))
            default: proxy.set(.hang)
            }
            try await pause()
            proxy.set(.pass)
        case .member(let index):
            let member = cluster.members[index]
            if fault.kind == .stall {
                member.send(SIGSTOP)
                try await pause()
                member.send(SIGCONT)
            } else {
                let signal = fault.kind == .kill ? SIGKILL : SIGTERM
                if let status = try await member.end(signal), let text = Member.objection(to: status, after: signal) {
                    run.events.record("UNCLEAN \(member.name): \(text)")
                    counts.withLock { $0["unclean stops", default: 0] += 1 }
                    if Member.isCrash(status, after: signal), !member.wasKilled {
                        run.found(Finding(kind: .crashed, text: "\(member.name): \(text)"))
                    }
                }
                try await pause()
                try member.start()
            }
        case .broker:
            guard let kafka = cluster.kafka else { return }
            switch fault.kind {
            case .stall:
                try await kafka.pause()
                try await pause()
                try await kafka.resume()
            default:
                if fault.kind == .kill { try await kafka.kill() } else { try await kafka.stop() }
                try await pause()
                try await kafka.startAgain()
            }
        case .database:
            guard let postgres = cluster.postgres else { return }
            switch fault.kind {
            case .stall:
                try await postgres.pause()
                try await pause()
                try await postgres.resume()
            default:
                if fault.kind == .kill { try await postgres.kill() } else { try await postgres.stop() }
                try await pause()
                try await postgres.startAgain()
            }
        }
    }

    /// The fault in reports, and the kind of its target.
    private func text(of fault: Fault) -> (name: String, subject: String) {
        switch fault.target {
        case .member(let index):
            let member = cluster.members[index]
            return ("\(fault.kind.rawValue) \(member.name)", member.role.rawValue)
        case .broker: return ("\(fault.kind.rawValue) Kafka", "Kafka")
        case .database: return ("\(fault.kind.rawValue) Postgres", "Postgres")
        case .proxy(let index, let proxy):
            let name = cluster.members[index].proxies[proxy].name
            let target = name.split(separator: " ").last.map(String.init) ?? name
            return (
                "\(fault.kind.rawValue) \(name)", "connections to \(target.hasPrefix("fanout") ? "fan-outs" : target)"
            )
        }
    }
}
