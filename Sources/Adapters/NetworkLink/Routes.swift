import FanOutLink
import SyncModel
import Synchronization

/// Which fan-outs one call may still ask: those that failed it are not asked again.
struct Routes {
    /// Owners with the same way are asked for together.
    struct Way: Hashable {
        let fanOut: Int
        /// `nil` while those of all partitions are.
        let partition: Int?
    }

    private let board: LinkState
    private var out: Set<Int> = []
    private var outPairs: Set<Way> = []
    /// Whether partitions are asked for apart, since one of several was not ready.
    private var isApart = false
    private var reason: String?
    private(set) var failures = 0

    init(_ board: LinkState) { self.board = board }

    /// Whom to ask about an owner.
    func fanOut(for owner: SyncID) throws(FanOutError) -> Int {
        let fanOut = board.state.withLock { state in
            board.place(of: owner, state) { out.contains($0) || outPairs.contains(Way(fanOut: $0, partition: $1)) }
        }
        if let fanOut { return fanOut }
        let partition = board.partitioning.partition(of: owner)
        throw .notReady(reason ?? "no fan-out serves partition \(partition) just now")
    }

    /// Whom to ask, and with which others.
    func way(for owner: SyncID) throws(FanOutError) -> Way {
        Way(fanOut: try fanOut(for: owner), partition: isApart ? board.partitioning.partition(of: owner) : nil)
    }

    /// Notes that a fan-out did not answer about owners; throws where another one would not help.
    mutating func note(
        _ failure: RemoteFanOut.Failure, _ fanOut: Int, _ owners: some Sequence<SyncID>
    ) throws(FanOutError) {
        failures += 1
        switch failure {
        case .lost(let words):
            reason = words
            out.insert(fanOut)
        case .failed(.notReady(let words)):
            reason = words
            let partitions = Set(owners.map { board.partitioning.partition(of: $0) })
            if partitions.count > 1 {
                // Which one it is shows when they are asked for apart.
                isApart = true
            } else {
                for partition in partitions { outPairs.insert(Way(fanOut: fanOut, partition: partition)) }
            }
        case .failed(.closed) where !Task.isCancelled && !board.state.withLock({ $0.isStopping }):
            reason = "the fan-out stops"
            out.insert(fanOut)
        case .failed(let error): throw error
        }
    }
}
