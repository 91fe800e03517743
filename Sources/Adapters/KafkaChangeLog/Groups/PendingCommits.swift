import AsyncPrimitives
import ChangeLog

/// The commits of a member that have no response yet, and those that are to be retried.
struct PendingCommits {
    /// How long a commit is retried before it fails.
    private static let retryLimit = Duration.seconds(10)
    private static let retryDelay = Duration.milliseconds(100)

    private var sent: [UInt: GroupSession.Commit] = [:]
    private var waiting: [(commit: GroupSession.Commit, at: ContinuousClock.Instant)] = []
    private var lastTag: UInt = 0

    var isEmpty: Bool { sent.isEmpty && waiting.isEmpty }

    /// The time until the next retry or timeout; `nil` if there is none.
    var millisecondsToNext: Int? {
        let timeouts = sent.values.map { $0.since + Self.retryLimit }
        guard let next = (waiting.map(\.at) + timeouts).min() else { return nil }
        let (seconds, attoseconds) = (next - .now).components
        return max(0, Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000) + 1)
    }

    /// Adds a commit that is sent; returns the tag of its response.
    mutating func add(_ commit: GroupSession.Commit) -> UInt {
        lastTag += 1
        sent[lastTag] = commit
        return lastTag
    }

    /// Removes the commit with a tag; `nil` if it failed before.
    mutating func remove(_ tag: UInt) -> GroupSession.Commit? { sent.removeValue(forKey: tag) }

    /// Schedules a retry; returns false if the commit was retried for long enough.
    mutating func retry(_ commit: GroupSession.Commit) -> Bool {
        guard ContinuousClock.now - commit.since < Self.retryLimit else { return false }
        waiting.append((commit, .now + Self.retryDelay))
        return true
    }

    /// Removes the commits without a response within the limit, as while no broker can be reached.
    mutating func removeOverdue() -> [GroupSession.Commit] {
        let now = ContinuousClock.now
        defer { sent = sent.filter { $0.value.since + Self.retryLimit > now } }
        return sent.values.filter { $0.since + Self.retryLimit <= now }
    }

    /// Removes the commits that are to be retried now.
    mutating func removeDue() -> [GroupSession.Commit] {
        guard !waiting.isEmpty else { return [] }
        let now = ContinuousClock.now
        defer { waiting.removeAll { $0.at <= now } }
        return waiting.filter { $0.at <= now }.map(\.commit)
    }

    /// Fails the commits of some assignments.
    mutating func fail(
        where isMeant: (GroupSession.HeldPartition) -> Bool,
        with error: (GroupSession.HeldPartition) -> ChangeLogError
    ) {
        let failed = sent.values.filter { isMeant($0.held) } + waiting.map(\.commit).filter { isMeant($0.held) }
        sent = sent.filter { !isMeant($0.value.held) }
        waiting.removeAll { isMeant($0.commit.held) }
        for commit in failed { commit.promise.fulfilOnce(.failure(error(commit.held))) }
    }
}
