import DeviceModel

/// A fault of one process or connection.
struct Fault: Sendable, Hashable {
    enum Target: Sendable, Hashable {
        /// A process of Weir, by index.
        case member(Int)
        case broker
        case database
        /// A proxy of a process, by index.
        case proxy(member: Int, Int)
    }

    enum Kind: String, Sendable, CaseIterable {
        /// SIGKILL, and a restart after a while.
        case kill
        /// SIGTERM, and a restart after a while.
        case stop
        /// SIGSTOP, and SIGCONT after a while.
        case stall
        /// Connections are reset.
        case refuse
        /// Connections are silent.
        case hang
        /// Connections are slow.
        case delay
    }

    let target: Target
    let kind: Kind
    /// How long it lasts, in milliseconds.
    let milliseconds: Int
    /// With ``Kind/delay``: by how much each piece is delayed.
    let delay: Int
}

/// The faults of a run, derived from its seed.
struct FaultPlan {
    /// What there is to be disturbed.
    struct Targets: Sendable {
        /// For each process the number of its proxies.
        let proxies: [Int]
        let hasBroker: Bool
        let hasDatabase: Bool
    }

    private let random: SeededGenerator
    private let targets: Targets
    private let perMinute: Int

    /// - Parameter perMinute: how many faults a minute has on average; 0 for none.
    init(seed: UInt64, perMinute: Int, _ targets: Targets) {
        random = SeededGenerator(seed: seed)
        self.perMinute = perMinute
        self.targets = targets
    }

    /// The next fault, and the milliseconds before it; `nil` where there are none.
    func next() -> (pause: Int, fault: Fault)? {
        guard perMinute > 0 else { return nil }
        let pause = random.number(0...(2 * 60_000 / perMinute))
        return (pause, fault())
    }

    /// Kills of one process after the other.
    ///
    /// First each is restarted long after others have taken over, then each at once. The next one follows ``pauseInTurn`` milliseconds
    /// after the restart, so that it shows how long devices wait for each.
    static func inTurn(processes: Int) -> [Fault] {
        [20_000, 0].flatMap { away in
            (0..<processes).map { Fault(target: .member($0), kind: .kill, milliseconds: away, delay: 0) }
        }
    }

    /// Longer than a session's time-out, and than what a fault may make devices wait.
    static let pauseInTurn = 15_000

    private func fault() -> Fault {
        let member = random.number(0...targets.proxies.count - 1)
        let chance = random.number(0...99)
        if chance < 3, targets.hasBroker { return make(.broker, random.pick([.kill, .stop, .stall])) }
        if chance < 10, targets.hasDatabase { return make(.database, random.pick([.kill, .stop, .stall])) }
        if chance < 55, targets.proxies[member] > 0 {
            let proxy = random.number(0...targets.proxies[member] - 1)
            return make(.proxy(member: member, proxy), random.pick([.refuse, .hang, .delay]))
        }
        return make(.member(member), random.pick([.kill, .kill, .stop, .stall]))
    }

    /// Mostly short, at times longer than the timeouts of sessions, heartbeats and calls.
    private func make(_ target: Fault.Target, _ kind: Fault.Kind) -> Fault {
        let longest = random.pick([300, 3000, 3000, 12_000])
        return Fault(
            target: target, kind: kind, milliseconds: random.number(20...longest), delay: random.number(1...200))
    }
}
