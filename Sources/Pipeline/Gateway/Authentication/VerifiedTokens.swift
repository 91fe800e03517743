import Digest
import SyncModel
import Synchronization
import WebTokens

/// A token whose signature was checked.
struct VerifiedToken: Sendable {
    let caller: Caller
    let validity: TokenValidity
    /// The token counts only while its key does.
    let key: KeyFingerprint

    /// An estimate of the memory that it takes, with its place in the cache.
    var byteCount: Int {
        caller.grants.reduce(256 + caller.syncID.text.utf8.count) { $0 + 64 + $1.owner.text.utf8.count }
    }
}

/// The tokens that were checked most recently, by the digest of their text.
///
/// Two generations: what is used moves to the young one, and what is only in the old one when the young one is full is
/// forgotten. So each use costs the same, and memory stays within the limits.
final class VerifiedTokens: Sendable {
    private struct State {
        var young: [KeyFingerprint: VerifiedToken] = [:]
        var old: [KeyFingerprint: VerifiedToken] = [:]
        var youngBytes = 0
    }

    private let maximumCount: Int
    private let maximumBytes: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - count: the most tokens; 0: none is kept.
    ///   - bytes: their most memory.
    init(count: Int, bytes: Int) {
        maximumCount = count / 2
        maximumBytes = bytes / 2
    }

    subscript(digest: KeyFingerprint) -> VerifiedToken? {
        state.withLock { state in
            if let token = state.young[digest] { return token }
            guard let token = state.old.removeValue(forKey: digest) else { return nil }
            insert(token, digest, &state)
            return token
        }
    }

    func insert(_ token: VerifiedToken, for digest: KeyFingerprint) {
        state.withLock { insert(token, digest, &$0) }
    }

    func remove(_ digest: KeyFingerprint) {
        state.withLock { state in
            state.old[digest] = nil
            if let token = state.young.removeValue(forKey: digest) { state.youngBytes -= token.byteCount }
        }
    }

    var count: Int { state.withLock { $0.young.count + $0.old.count } }

    private func insert(_ token: VerifiedToken, _ digest: KeyFingerprint, _ state: inout State) {
        let bytes = token.byteCount
        guard maximumCount > 0, bytes <= maximumBytes else { return }
        if state.young.count >= maximumCount || state.youngBytes + bytes > maximumBytes {
            (state.old, state.young, state.youngBytes) = (state.young, [:], 0)
        }
        if let replaced = state.young.updateValue(token, forKey: digest) { state.youngBytes -= replaced.byteCount }
        state.youngBytes += bytes
    }
}
