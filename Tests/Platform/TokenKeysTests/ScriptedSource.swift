import AsyncPrimitives
import Synchronization
import TestClocks
import TestSignals
import TokenKeys
import WebTokens

/// A source whose readings a test answers.
final class ScriptedSource: KeySource {
    struct Failure: Error {}

    private let answer = Mutex<Result<PublishedKeys, Failure>>(.failure(Failure()))
    private let gate = Gate()
    private let readings = Atomic(0)
    let begun = Signal<Void>()

    init(_ keys: SigningKey..., maximumAge: Duration? = nil) throws {
        gate.open()
        try publish(keys, maximumAge: maximumAge)
    }

    var name: String { "the test" }
    var count: Int { readings.load(ordering: .relaxed) }

    func keys() async throws -> PublishedKeys {
        readings.add(1, ordering: .relaxed)
        begun.send()
        try await gate.wait()
        return try answer.withLock(\.self).get()
    }

    func close() async {}

    func publish(_ keys: SigningKey..., maximumAge: Duration? = nil) throws {
        try publish(keys, maximumAge: maximumAge)
    }

    private func publish(_ keys: [SigningKey], maximumAge: Duration?) throws {
        let published = PublishedKeys(try KeySet(jwks: SigningKey.jwks(keys)), maximumAge: maximumAge)
        answer.withLock { $0 = .success(published) }
    }

    func fail() { answer.withLock { $0 = .failure(Failure()) } }

    func hold() { gate.close() }

    func release() { gate.open() }
}

/// Keys of a scripted source, at the times of a manual clock.
struct TestKeys: Sendable {
    let source: ScriptedSource
    let clock: ManualClock
    let keys: IssuerKeys
    /// Whether each reading succeeded.
    let ended: Signal<Bool>

    func isFound(_ key: SigningKey) throws -> Bool {
        if case .found = try keys.key(for: key.unsignedToken()) { true } else { false }
    }

    /// Waits for a token's key as a request does, and returns once it waits or has waited.
    func awaiting(_ key: SigningKey) async throws -> Task<Void, any Error> {
        let token = try key.unsignedToken()
        let before = keys.waitingCount
        let hasEnded = AwaitableState(false)
        let task = Task {
            defer { hasEnded.update { $0 = true } }
            _ = try await keys.awaitedKey(for: token)
        }
        while keys.waitingCount == before, !hasEnded.value { await Task.yield() }
        return task
    }
}

/// Runs keys for the time of a test; the first reading has ended.
func withKeys(
    _ source: ScriptedSource, _ prepare: (inout IssuerKeysSettings) -> Void = { _ in },
    test: (TestKeys) async throws -> Void
) async throws {
    var settings = IssuerKeysSettings()
    prepare(&settings)
    let (clock, ended) = (ManualClock(), Signal<Bool>())
    let keys = IssuerKeys(source, settings: settings, clock: clock) { ended.send($0) }
    let running = Task { try await keys.run() }
    _ = await ended.next()
    let result = await Result.capturing {
        try await test(TestKeys(source: source, clock: clock, keys: keys, ended: ended))
    }
    running.cancel()
    source.release()
    try await running.value
    try result.get()
}

extension SigningKey {
    /// A token that names this key.
    func unsignedToken() throws -> SignedToken {
        try SignedToken(Array(token(claims: Array("{}".utf8))!.utf8)[...])
    }

    static func ed(_ id: String) -> SigningKey { SigningKey(generating: .edDSA, id: id)! }
}
