import WebTokens

/// What is known of an issuer's keys, and which reading of them requests wait for: a value without effects.
struct IssuerKeysState: Sendable {
    private let settings: IssuerKeysSettings
    private(set) var set: KeySet?
    /// When the reading that gave `set` began.
    private(set) var readAt: Duration = .zero
    /// Readings that have begun, and those that have ended; they do not overlap.
    private(set) var begun = 0
    private(set) var ended = 0
    /// Whether the last reading that ended failed, and why.
    private(set) var failure: String?
    private(set) var isStopped = false

    private var lastBegin: Duration?
    private var nextReading: Duration = .zero
    /// The names that requests wait for, each with the first reading that began after it was asked for last, and how many wait.
    private var wanted: [String: (reading: Int, requests: Int)] = [:]
    private(set) var waiting = 0
    /// Names that were asked for before the last reading, which did not have them.
    private var absent: Set<String> = []

    init(_ settings: IssuerKeysSettings) { self.settings = settings }

    // MARK: Requests

    /// The set, unless it is too old.
    func current(at now: Duration) -> KeySet? {
        guard let set, now - readAt <= settings.staleLimit else { return nil }
        return set
    }

    /// What a request does about a token whose key is not in ``current(at:)``.
    enum Choice: Sendable {
        /// Its key is none of the issuer's.
        case refuse
        /// The keys cannot be read at the moment.
        case unavailable(retryAfter: Duration)
        /// A reading is under way or due that may bring the key.
        case wait
    }

    func choice(for token: SignedToken, at now: Duration) -> Choice {
        let sinceBegin = lastBegin.map { now - $0 } ?? .seconds(Int64.max / 4)
        let isCooling = sinceBegin < settings.cooldown
        if isStopped { return .unavailable(retryAfter: .seconds(1)) }
        if current(at: now) != nil, isCooling, absent.contains(Self.name(of: token)) { return .refuse }
        if failure != nil, begun == ended, isCooling { return .unavailable(retryAfter: max(.zero, nextReading - now)) }
        if waiting >= settings.maximumWaiting { return .unavailable(retryAfter: settings.cooldown) }
        return .wait
    }

    /// A request waits for a token's key.
    ///
    /// - Returns: the number of the reading whose end decides.
    mutating func wait(for token: SignedToken) -> Int {
        waiting += 1
        let name = Self.name(of: token)
        // A reading under way may have begun before the key was published.
        let number = max(wanted[name]?.reading ?? 0, begun + 1)
        wanted[name] = (number, (wanted[name]?.requests ?? 0) + 1)
        return number
    }

    /// A request waits no longer; names for which none waits are forgotten, so that these are as many as requests.
    mutating func stopWaiting(for token: SignedToken) {
        waiting -= 1
        let name = Self.name(of: token)
        guard let entry = wanted[name] else { return }
        wanted[name] = entry.requests > 1 ? (entry.reading, entry.requests - 1) : nil
    }

    // MARK: Readings

    /// When to read next; `nil` while a reading is under way.
    func nextBegin() -> Duration? {
        guard begun == ended else { return nil }
        guard !wanted.isEmpty, let lastBegin else { return nextReading }
        return min(nextReading, lastBegin + settings.cooldown)
    }

    mutating func begin(at now: Duration) {
        begun += 1
        lastBegin = now
    }

    /// A reading has ended well.
    mutating func end(with published: PublishedKeys, at now: Duration) {
        let names = Set((set?.keys ?? []).compactMap(\.id))
        ended = begun
        failure = nil
        set = published.set
        readAt = lastBegin ?? now
        let age = min(max(published.maximumAge ?? settings.maximumAge, settings.minimumAge), settings.maximumAge)
        nextReading = readAt + age
        // A key that is withdrawn was asked for before, too.
        let asked = wanted.filter { $0.value.reading <= ended }.map(\.key)
        absent.formUnion(names)
        if absent.count > 2 * settings.maximumWaiting { absent = names }
        absent.formUnion(asked)
        absent.subtract(published.set.keys.compactMap(\.id))
        forgetWanted()
    }

    /// A reading has failed; the set stays.
    mutating func fail(_ reason: String, retryAt time: Duration) {
        ended = begun
        failure = reason
        nextReading = time
        forgetWanted()
    }

    mutating func stop() { isStopped = true }

    private mutating func forgetWanted() { wanted = wanted.filter { $0.value.reading > ended } }

    private static func name(of token: SignedToken) -> String {
        // No name in a token has a NUL where the next part would be an algorithm, and if one has it is only absent.
        token.keyID ?? "\u{0}\(token.algorithm.rawValue)"
    }
}
