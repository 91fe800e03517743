import AsyncPrimitives
import Synchronization

/// The turns of parts whose rows are more than one step has: one at a time is read, decided and written, in all partitions of
/// a process together.
///
/// Such a part needs several times the size of its rows, which a batch alone bounds; as many of them as there are partitions
/// would need more memory than a process may have.
package final class LargePartTurns: Sendable {
    /// A part's turn, until it is given back, at the latest when nothing refers to it.
    package final class Turn: Sendable {
        private let number: Int
        private let turns: LargePartTurns
        private let limit: Task<Void, any Error>

        fileprivate init(_ number: Int, of turns: LargePartTurns, _ clock: any Clock<Duration>) {
            self.number = number
            self.turns = turns
            limit = Task {
                try await clock.sleep(for: LargePartTurns.limit)
                turns.end(number)
            }
        }

        deinit { giveBack() }

        /// Lets the next part begin; may be repeated.
        package func giveBack() {
            limit.cancel()
            turns.end(number)
        }
    }

    private struct State {
        var last = 0
        /// The number of the turn that was not given back.
        var current: Int?
        /// In the order of their calls, as many as there are partitions, and those that were cancelled since the turn began.
        var waiting: [(number: Int, turn: Promise<Bool>)] = []
    }

    /// After it the next part begins although this one is not written: a log or tables that do not answer one partition must not
    /// hold up the others for longer.
    package static let limit = Duration.seconds(30)

    private let state = Mutex(State())

    package init() {}

    /// Waits for the turn of a part.
    ///
    /// - Parameter clock: measures the turn.
    /// - Throws: `CancellationError`.
    package func take(_ clock: any Clock<Duration>) async throws -> Turn {
        let turn = Promise<Bool>()
        let number = state.withLock { state in
            state.last += 1
            state.waiting.append((state.last, turn))
            Self.passOn(&state)
            return state.last
        }
        guard await turn.value(cancelled: false) else { throw CancellationError() }
        return Turn(number, of: self, clock)
    }

    private func end(_ number: Int) {
        state.withLock { state in
            guard state.current == number else { return }
            state.current = nil
            Self.passOn(&state)
        }
    }

    /// Lets the part begin that has waited longest, unless one has its turn.
    private static func passOn(_ state: inout State) {
        while state.current == nil, !state.waiting.isEmpty {
            let next = state.waiting.removeFirst()
            // One that was cancelled does not begin.
            if next.turn.fulfil(true) { state.current = next.number }
        }
    }
}
