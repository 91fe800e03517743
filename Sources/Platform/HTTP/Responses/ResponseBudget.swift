import AsyncPrimitives
import Synchronization

/// Limits the bytes of large responses, from before they are made until their clients have read them.
///
/// A handler reserves what a response may have at most before it reads what the response is made of, and the server reduces
/// the reservation to what it sends. Callers take turns, and a caller holds at most as many bytes as are free, so that
/// clients which do not read leave a share to those of others.
package final class ResponseBudget: Sendable {
    /// Why nothing was reserved.
    package enum Refusal: Error, Sendable, Hashable {
        /// Nothing was free in time, or too many wait already.
        case late
        case cancelled
    }

    private final class Waiter: Sendable {
        let caller: BodyBudget.Holder
        let bytes: Int
        let turn = Promise<Result<Void, Refusal>>()
        /// Nobody waits any more.
        let hasLeft = Atomic(false)

        init(_ caller: BodyBudget.Holder, _ bytes: Int) {
            self.caller = caller
            self.bytes = bytes
        }
    }

    private struct State {
        var used = 0
        var held: [BodyBudget.Holder: Int] = [:]
        var queue = FairQueue<BodyBudget.Holder, Waiter>()
        /// The number of waiters in the queue, those included that have left; in total and of each caller.
        var waiting = 0
        var waitingOf: [BodyBudget.Holder: Int] = [:]
        /// No waiter needs less.
        var smallest = Int.max

        mutating func add(_ waiter: Waiter) {
            queue.append(waiter, for: waiter.caller)
            waiting += 1
            waitingOf[waiter.caller, default: 0] += 1
            smallest = min(smallest, waiter.bytes)
        }

        /// Takes bytes for a holder, or gives them back where there are fewer than none.
        mutating func take(_ bytes: Int, for holder: BodyBudget.Holder) {
            used += bytes
            let count = held[holder, default: 0] + bytes
            held[holder] = count > 0 ? count : nil
        }

        mutating func removed(_ waiter: Waiter) {
            waiting -= 1
            waitingOf[waiter.caller] = waitingOf[waiter.caller].flatMap { $0 > 1 ? $0 - 1 : nil }
            if waiting == 0 { smallest = .max }
        }
    }

    private let limit: Int
    private let maximumWaiting: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - limit: of the bytes.
    ///   - maximumWaiting: how many may wait for their turn; of one caller, as many as are free.
    package init(limit: Int, maximumWaiting: Int = 20_000) {
        self.limit = limit
        self.maximumWaiting = maximumWaiting
    }

    package var inFlight: Int { state.withLock(\.used) }

    /// How many wait for their turn.
    package var waiting: Int { state.withLock(\.waiting) }

    /// Reserves bytes for a caller, once they are free and it is its turn; at once if nothing else is reserved.
    ///
    /// - Parameter timeout: returns when the wait must end.
    package func reserve(
        _ bytes: Int, for caller: String, timeout: @escaping @Sendable () async throws -> Void
    ) async throws(Refusal) -> ResponseReservation {
        let waiter = Waiter(.caller(caller), bytes)
        let granted = try state.withLock { state throws(Refusal) in
            guard state.waitingOf[waiter.caller, default: 0] < maximumWaiting - state.waiting else { throw .late }
            state.add(waiter)
            return takeWaiters(&state)
        }
        grant(granted.filter { $0 !== waiter })
        if !granted.contains(where: { $0 === waiter }) { try await turn(of: waiter, timeout).get() }
        return ResponseReservation(self, waiter.caller, bytes)
    }

    private func turn(
        of waiter: Waiter, _ timeout: @escaping @Sendable () async throws -> Void
    ) async -> Result<Void, Refusal> {
        let result = await waiter.turn.value(
            late: .failure(.late), cancelled: .failure(.cancelled), timeout: timeout)
        waiter.hasLeft.store(true, ordering: .relaxed)
        return result
    }

    /// Reserves bytes for a response that is made already, without a turn; whatever it has if nothing else is reserved, so
    /// that one response may exceed the limit.
    ///
    /// - Parameter holder: the caller, or an address for a request whose caller the server does not know.
    func reserveNow(_ bytes: Int, for holder: BodyBudget.Holder) -> ResponseReservation? {
        let isReserved = state.withLock { state in
            guard isFree(bytes, for: holder, state) else { return false }
            state.take(bytes, for: holder)
            return true
        }
        return isReserved ? ResponseReservation(self, holder, bytes) : nil
    }

    private func isFree(_ bytes: Int, for holder: BodyBudget.Holder, _ state: borrowing State) -> Bool {
        if state.used == 0 { return true }
        let free = limit - state.used
        return bytes <= free && state.held[holder].map { $0 + bytes <= free } ?? true
    }

    /// Takes the waiters whose bytes are free, and those that have left.
    private func takeWaiters(_ state: inout State) -> [Waiter] {
        var taken: [Waiter] = []
        // Where too little is free for anybody, nobody is looked at.
        while state.used == 0 || limit - state.used >= state.smallest {
            var queue = FairQueue<BodyBudget.Holder, Waiter>()
            swap(&queue, &state.queue)
            let waiter = queue.take { $1.hasLeft.load(ordering: .relaxed) || isFree($1.bytes, for: $0, state) }
            swap(&queue, &state.queue)
            guard let waiter else { return taken }
            state.removed(waiter)
            if waiter.hasLeft.load(ordering: .relaxed) { continue }
            state.take(waiter.bytes, for: waiter.caller)
            taken.append(waiter)
        }
        return taken
    }

    private func grant(_ waiters: [Waiter]) {
        // One that has left meanwhile gives its bytes back.
        for waiter in waiters where !waiter.turn.fulfil(.success(())) {
            change(by: -waiter.bytes, of: waiter.caller)
        }
    }

    fileprivate func change(by bytes: Int, of holder: BodyBudget.Holder) {
        grant(
            state.withLock { state in
                state.take(bytes, for: holder)
                return takeWaiters(&state)
            })
    }
}

/// Bytes reserved in a ``ResponseBudget``; freed when the response that holds them ends.
package final class ResponseReservation: Sendable {
    private let budget: ResponseBudget
    let holder: BodyBudget.Holder
    private let bytes: Mutex<Int>

    fileprivate init(_ budget: ResponseBudget, _ holder: BodyBudget.Holder, _ bytes: Int) {
        self.budget = budget
        self.holder = holder
        self.bytes = Mutex(bytes)
    }

    /// Reserves as many bytes as the response has, more or less.
    package func resize(to count: Int) {
        let difference = bytes.withLock { bytes in
            defer { bytes = count }
            return count - bytes
        }
        if difference != 0 { budget.change(by: difference, of: holder) }
    }

    deinit {
        let bytes = bytes.withLock { $0 }
        if bytes != 0 { budget.change(by: -bytes, of: holder) }
    }
}
