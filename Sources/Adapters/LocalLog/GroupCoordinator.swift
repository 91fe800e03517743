import ChangeLog
import Synchronization

/// Shares the partitions of a topic among the members of a group, within this process.
///
/// A partition is given to a member only after the one that had it has let it go.
package final class GroupCoordinator: Sendable {
    /// A member and how it is told to look again.
    private struct Member {
        let id: Int
        let changed: @Sendable () -> Void
    }

    /// A partition as one worker has it; the same member's next worker has another.
    struct Holding: Sendable, Hashable {
        let partition: Int
        fileprivate let member: Int
        fileprivate let number: Int
    }

    private struct State {
        /// In the order of joining.
        var members: [Member] = []
        /// Who works on each partition now.
        var holdings: [Holding?]
        var lastNumber = 0
        var isClosed = false
    }

    private let state: Mutex<State>

    package init(partitionCount: Int) {
        state = Mutex(State(holdings: Array(repeating: nil, count: partitionCount)))
    }

    /// Adds a member; everybody is told.
    func join(_ changed: @escaping @Sendable () -> Void) -> Int {
        change { state in
            state.lastNumber += 1
            state.members.append(Member(id: state.lastNumber, changed: changed))
            return state.lastNumber
        }
    }

    /// Removes a member whose workers have ended; everybody else is told.
    func leave(_ member: Int) {
        change { state in
            state.members.removeAll { $0.id == member }
            for place in state.holdings.indices where state.holdings[place]?.member == member {
                state.holdings[place] = nil
            }
        }
    }

    /// Tells every member that the log was closed.
    package func close() { change { $0.isClosed = true } }

    /// Whether the log was closed.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// What a member holds and must let go, and what is its own from now on.
    ///
    /// Partitions go round the members in the order of their joining.
    func assignment(of member: Int) -> (revoked: [Holding], assigned: [Holding]) {
        state.withLock { state in
            var revoked: [Holding] = []
            var assigned: [Holding] = []
            guard let place = state.members.firstIndex(where: { $0.id == member }) else { return (revoked, assigned) }
            for partition in state.holdings.indices {
                let isWanted = partition % state.members.count == place
                if let holding = state.holdings[partition] {
                    if holding.member == member, !isWanted { revoked.append(holding) }
                } else if isWanted {
                    state.lastNumber += 1
                    let holding = Holding(partition: partition, member: member, number: state.lastNumber)
                    state.holdings[partition] = holding
                    assigned.append(holding)
                }
            }
            return (revoked, assigned)
        }
    }

    /// Lets partitions go, whose workers have ended; everybody is told.
    func release(_ holdings: [Holding]) {
        guard !holdings.isEmpty else { return }
        change { state in
            for holding in holdings where state.holdings[holding.partition] == holding {
                state.holdings[holding.partition] = nil
            }
        }
    }

    /// Whether a partition is still held, so that its worker may commit.
    func isHeld(_ holding: Holding) -> Bool { state.withLock { $0.holdings[holding.partition] == holding } }

    private func change<Result: Sendable>(_ body: (inout sending State) -> sending Result) -> Result {
        let (result, members) = state.withLock { state in
            let result = body(&state)
            return (result, state.members)
        }
        for member in members { member.changed() }
        return result
    }
}
