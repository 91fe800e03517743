import AsyncPrimitives
import Observability
import WebTokens

/// The keys of an issuer, read from their source before they are too old and when a token names one that is not known.
///
/// While the source fails, its last keys are used.
package final class IssuerKeys: Sendable {
    /// What is known of a token's key at once.
    package enum Lookup: Sendable {
        case found(VerificationKey)
        /// The keys are being read, or will be soon; see ``IssuerKeys/awaitedKey(for:)``.
        case awaited
    }

    /// Why a token cannot be checked at the moment.
    package struct Unavailable: Error, Sendable {
        package let retryAfter: Duration
    }

    /// The keys could not be read at the start.
    package struct FirstReadingFailed: Error, Sendable, CustomStringConvertible {
        package let description: String
    }

    private let source: any KeySource
    private let settings: IssuerKeysSettings
    private let state: AwaitableState<IssuerKeysState>
    private let clock: MonotonicClock
    private let wakeup = Wakeup()
    private let logger: Logger
    private let onReading: @Sendable (_ succeeded: Bool) -> Void

    /// - Parameters:
    ///   - keys: the source's, if they were read already.
    ///   - onReading: called at the end of each reading of the source.
    package init(
        _ source: any KeySource, settings: IssuerKeysSettings = IssuerKeysSettings(), keys: PublishedKeys? = nil,
        logger: Logger = .disabled, clock: some Clock<Duration> = ContinuousClock(),
        onReading: @escaping @Sendable (_ succeeded: Bool) -> Void = { _ in }
    ) {
        self.source = source
        self.settings = settings
        self.logger = logger
        self.clock = MonotonicClock(clock)
        self.onReading = onReading
        var state = IssuerKeysState(settings)
        if let keys {
            state.begin(at: self.clock.now())
            state.end(with: keys, at: self.clock.now())
        }
        self.state = AwaitableState(state)
    }

    /// The key of a token, if that is known now; never blocks.
    package func key(for token: SignedToken) throws -> Lookup {
        let now = clock.now()
        let result: Result<Lookup, any Error> = state.read { state in
            do throws(TokenRefusal) {
                guard let set = state.current(at: now) else {
                    throw TokenRefusal(.key, "the keys are not known")
                }
                return .success(.found(try set.key(for: token)))
            } catch {
                switch state.choice(for: token, at: now) {
                case .refuse: return .failure(error)
                case .unavailable(let time): return .failure(Unavailable(retryAfter: time))
                case .wait: return .success(.awaited)
                }
            }
        }
        return try result.get()
    }

    /// Waits for the reading that a token's key may come with, and returns the key.
    ///
    /// It ends at the latest when the second reading from now has ended, which takes no longer than the cooldown and two
    /// readings.
    ///
    /// - Throws: `TokenRefusal`, ``Unavailable`` or `CancellationError`.
    package func awaitedKey(for token: SignedToken) async throws -> VerificationKey {
        // No condition depends on who waits.
        let number = try state.change { state throws(Unavailable) in
            if case .unavailable(let time) = state.choice(for: token, at: clock.now()) {
                throw Unavailable(retryAfter: time)
            }
            return state.wait(for: token)
        }
        defer { state.change { $0.stopWaiting(for: token) } }
        wakeup.signal()
        try await state.wait { [clock] state in
            if state.isStopped || state.ended >= number { return true }
            // A reading may have brought it that was under way, or has ended since it was looked for.
            return state.current(at: clock.now())?.find(for: token) != nil
        }
        let now = clock.now()
        let result: Result<VerificationKey, any Error> = state.read { state in
            guard let set = state.current(at: now) else { return .failure(Unavailable(retryAfter: .seconds(1))) }
            do throws(TokenRefusal) {
                return .success(try set.key(for: token))
            } catch {
                let isUnknown = state.isStopped || state.failure != nil
                return .failure(isUnknown ? Unavailable(retryAfter: .seconds(1)) : error)
            }
        }
        return try result.get()
    }

    /// Whether a key is still one of the issuer's.
    package func contains(_ key: KeyFingerprint) -> Bool {
        let now = clock.now()
        return state.read { $0.current(at: now)?.contains(key) ?? false }
    }

    /// Reads the keys when it is time, until the task is cancelled.
    ///
    /// - Parameter isRequired: whether it throws where the first reading fails.
    package func run(requiringFirst isRequired: Bool = false) async throws(FirstReadingFailed) {
        var backoff = Backoff(RetryPolicy(delays: settings.retryDelays))
        while !Task.isCancelled {
            guard let time = state.read({ $0.nextBegin() }) else { break }
            if clock.now() >= time {
                await read(&backoff)
                let (set, failure) = state.read { ($0.set, $0.failure) }
                if isRequired, set == nil, let failure, !Task.isCancelled {
                    state.update { $0.stop() }
                    await source.close()
                    throw FirstReadingFailed(
                        description: "the keys of tokens cannot be read from \(source.name): \(failure)")
                }
            } else {
                await wait(until: time)
            }
        }
        state.update { $0.stop() }
        await source.close()
    }

    /// How many requests wait for keys.
    package var waitingCount: Int { state.read(\.waiting) }

    /// The current state, for metrics and readiness.
    package var status: IssuerKeysStatus {
        let now = clock.now()
        return state.read { state in
            IssuerKeysStatus(
                count: state.set?.keys.count, age: state.set == nil ? nil : now - state.readAt,
                isUsable: state.current(at: now) != nil, failure: state.failure, source: source.name)
        }
    }

    private func wait(until time: Duration) async {
        let timer = Task { [clock, wakeup] in
            // Cancelled when a request needs keys first.
            do { try await clock.sleep(time) } catch { return }
            wakeup.signal()
        }
        await wakeup.waitUnlessCancelled()
        timer.cancel()
    }

    private func read(_ backoff: inout Backoff) async {
        state.update { $0.begin(at: clock.now()) }
        do {
            let published = try await source.keys()
            let (old, failure) = state.read { ($0.set, $0.failure) }
            state.update { $0.end(with: published, at: clock.now()) }
            backoff.reset()
            log(published.set, replacing: old, after: failure)
            onReading(true)
        } catch {
            if Task.isCancelled { return state.update { $0.fail("cancelled", retryAt: clock.now()) } }
            let isFirst = state.read { $0.failure == nil }
            let delay = backoff.next()
            state.update { $0.fail("\(error)", retryAt: clock.now() + delay) }
            if isFirst {
                logger.warning(
                    "The keys of tokens cannot be read: those known stay in use, and further attempts follow",
                    [.url: .string(source.name)], error: error)
            } else {
                logger.debug("The keys of tokens cannot be read", [.reason: .text("\(error)")])
            }
            onReading(false)
        }
    }

    private func log(_ set: KeySet, replacing old: KeySet?, after failure: String?) {
        if failure != nil { logger.notice("The keys of tokens are read again", [.url: .string(source.name)]) }
        let isSame = old.map { old in
            old.keys.count == set.keys.count && set.keys.allSatisfy { old.contains($0.fingerprint) }
        }
        if isSame == true { return }
        logger.notice(
            "The keys of tokens were read", [.url: .string(source.name), .count: .integer(set.keys.count)])
        if set.keys.isEmpty {
            logger.warning(
                "The source of keys has none that can be used: no token is accepted", [.url: .string(source.name)])
        }
        for reason in set.unused.prefix(10) {
            logger.info("A published key is not used", [.url: .string(source.name), .reason: .string(reason)])
        }
    }
}

/// The state of an issuer's keys at one moment.
package struct IssuerKeysStatus: Sendable {
    /// `nil` before the first reading.
    package let count: Int?
    /// Since the reading that gave the keys.
    package let age: Duration?
    /// Whether tokens can be checked.
    package let isUsable: Bool
    /// Why the last reading failed; `nil` if it did not.
    package let failure: String?
    package let source: String

    /// Why no token can be checked, for readiness; `nil` where they can.
    package var reason: String? {
        if isUsable { return nil }
        let cause = failure.map { ": \($0)" } ?? ""
        return count == nil
            ? "the keys of tokens have not been read yet from \(source)\(cause)"
            : "the keys of tokens are too old, and cannot be read from \(source)\(cause)"
    }
}

/// A clock whose times count from the creation, so that they are plain durations.
struct MonotonicClock: Sendable {
    let now: @Sendable () -> Duration
    /// Throws if the task is cancelled.
    let sleep: @Sendable (_ until: Duration) async throws -> Void

    init<C: Clock>(_ clock: C) where C.Duration == Duration {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
    }
}
