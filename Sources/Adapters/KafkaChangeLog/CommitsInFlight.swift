import ChangeLog

/// The commits of a member that have no answer yet, and those that are to be tried again.
struct CommitsInFlight {
    /// For how long a commit is tried before its caller is told.
    private static let patience = Duration.seconds(10)
    private static let pause = Duration.milliseconds(100)

    private var sent: [UInt: GroupSession.Commit] = [:]
    private var waiting: [(commit: GroupSession.Commit, at: ContinuousClock.Instant)] = []
    private var lastTag: UInt = 0

    var isEmpty: Bool { sent.isEmpty && waiting.isEmpty }

    /// How long the thread may sleep; `nil` for ever.
    var millisecondsToNext: Int? {
        let ends = sent.values.map { $0.since + Self.patience }
        guard let next = (waiting.map(\.at) + ends).min() else { return nil }
        let (seconds, attoseconds) = (next - .now).components
        return max(0, Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000) + 1)
    }

    /// Notes a commit that is sent.
    ///
    /// - Returns: what its answer is known by.
    mutating func add(_ commit: GroupSession.Commit) -> UInt {
        lastTag += 1
        sent[lastTag] = commit
        return lastTag
    }

    /// The commit that an answer is about; `nil` where it failed before.
    mutating func answered(_ tag: UInt) -> GroupSession.Commit? { sent.removeValue(forKey: tag) }

    /// Keeps a commit to be tried again, unless that was done for long enough.
    mutating func retry(_ commit: GroupSession.Commit) -> Bool {
        guard ContinuousClock.now - commit.since < Self.patience else { return false }
        waiting.append((commit, .now + Self.pause))
        return true
    }

    /// Takes the commits that have gone without an answer for too long, as while no broker can be reached.
    mutating func overdue() -> [GroupSession.Commit] {
        let now = ContinuousClock.now
        defer { sent = sent.filter { $0.value.since + Self.patience > now } }
        return sent.values.filter { $0.since + Self.patience <= now }
    }

    /// Takes the commits whose time has come.
    mutating func due() -> [GroupSession.Commit] {
        guard !waiting.isEmpty else { return [] }
        let now = ContinuousClock.now
        defer { waiting.removeAll { $0.at <= now } }
        return waiting.filter { $0.at <= now }.map(\.commit)
    }

    /// Fails the commits of partitions.
    mutating func fail(
        where isMeant: (GroupSession.Holding) -> Bool, with error: (GroupSession.Holding) -> ChangeLogError
    ) {
        let failed = sent.values.filter { isMeant($0.holding) } + waiting.map(\.commit).filter { isMeant($0.holding) }
        sent = sent.filter { !isMeant($0.value.holding) }
        waiting.removeAll { isMeant($0.commit.holding) }
        for commit in failed { commit.promise.fulfil(.failure(error(commit.holding))) }
    }
}
