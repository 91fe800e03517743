import Synchronization

/// Limits the bytes of request bodies, those being received and those that handlers hold.
///
/// An address or a caller that has several bodies holds at most as many bytes as are free, so that it leaves a share to
/// others. Nothing waits: a request that is refused releases what it had, so that half-received bodies cannot block each
/// other.
final class BodyBudget: Sendable {
    enum Holder: Hashable, Sendable {
        case address(HTTPPeer.Client)
        case caller(String)
    }

    fileprivate struct Held {
        var bodies = 0
        var bytes = 0
    }

    fileprivate struct State {
        var used = 0
        var held: [Holder: Held] = [:]
    }

    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int) { self.limit = limit }

    var inFlight: Int { state.withLock(\.used) }

    /// Begins a body, if it could have so many bytes now; it reserves them as it grows.
    func begin(_ holders: [Holder], expecting bytes: Int) -> BodyReservation? {
        let begins = state.withLock { state in
            for holder in holders { state.held[holder, default: Held()].bodies += 1 }
            if isFree(bytes, holders, state) { return true }
            state.end(holders)
            return false
        }
        return begins ? BodyReservation(self, holders) : nil
    }

    private func isFree(_ bytes: Int, _ holders: [Holder], _ state: borrowing State) -> Bool {
        let free = limit - state.used
        guard bytes <= free else { return false }
        for holder in holders {
            // A single body may need more than half of a small limit.
            if let held = state.held[holder], held.bodies > 1, held.bytes + bytes > free { return false }
        }
        return true
    }

    fileprivate func grow(_ holders: [Holder], by bytes: Int) -> Bool {
        state.withLock { state in
            guard isFree(bytes, holders, state) else { return false }
            state.change(holders, by: bytes)
            return true
        }
    }

    fileprivate func shrink(_ holders: [Holder], by bytes: Int) {
        state.withLock { $0.change(holders, by: -bytes) }
    }

    fileprivate func end(_ holders: [Holder], with bytes: Int) {
        state.withLock { state in
            state.change(holders, by: -bytes)
            state.end(holders)
        }
    }
}

extension BodyBudget.State {
    fileprivate mutating func change(_ holders: [BodyBudget.Holder], by bytes: Int) {
        used += bytes
        for holder in holders { held[holder, default: .init()].bytes += bytes }
    }

    fileprivate mutating func end(_ holders: [BodyBudget.Holder]) {
        for holder in holders {
            held[holder]?.bodies -= 1
            if held[holder]?.bodies == 0 { held[holder] = nil }
        }
    }
}

/// The bytes of one body, until it is released.
final class BodyReservation: Sendable {
    private let budget: BodyBudget
    private let holders: [BodyBudget.Holder]
    private let bytes = Atomic(0)

    fileprivate init(_ budget: BodyBudget, _ holders: [BodyBudget.Holder]) {
        self.budget = budget
        self.holders = holders
    }

    deinit { budget.end(holders, with: bytes.load(ordering: .relaxed)) }

    /// Reserves further bytes if they are free.
    func grow(by count: Int) -> Bool {
        guard budget.grow(holders, by: count) else { return false }
        bytes.add(count, ordering: .relaxed)
        return true
    }

    func shrink(by count: Int) {
        bytes.subtract(count, ordering: .relaxed)
        budget.shrink(holders, by: count)
    }
}
