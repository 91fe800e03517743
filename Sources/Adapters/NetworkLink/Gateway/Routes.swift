import FanOutLink
import SyncModel
import Synchronization

/// The fan-outs that one call may still use: a fan-out that failed it is excluded.
struct Routes {
    /// Owners with the same route share a request.
    struct Route: Hashable {
        let fanOut: Int
        /// `nil` while one request covers all partitions.
        let partition: Int?
    }

    private let connections: ConnectionState
    private var excludedFanOuts: Set<Int> = []
    private var excludedRoutes: Set<Route> = []
    /// Whether each partition gets a request of its own, because one of several was not ready.
    private var isSplitByPartition = false
    private var lastReason: String?
    private(set) var failures = 0

    init(_ connections: ConnectionState) { self.connections = connections }

    func fanOut(for owner: SyncID) throws(FanOutError) -> Int {
        if let fanOut = find(for: owner) { return fanOut }
        throw .notReady(lastReason ?? "no fan-out serves partition \(connections.partitioning.partition(of: owner))")
    }

    /// Whether a fan-out other than this one may answer for an owner.
    func hasAlternative(to fanOut: Int, for owner: SyncID) -> Bool { find(for: owner, besides: fanOut) != nil }

    private func find(for owner: SyncID, besides other: Int? = nil) -> Int? {
        connections.state.withLock { state in
            connections.fanOut(of: owner, state) {
                $0 == other || excludedFanOuts.contains($0)
                    || excludedRoutes.contains(Route(fanOut: $0, partition: $1))
            }
        }
    }

    /// Excludes a fan-out whose stream of an owner has not come as far as the call needs.
    mutating func exclude(lagging fanOut: Int, for owner: SyncID) {
        failures += 1
        excludedRoutes.insert(Route(fanOut: fanOut, partition: connections.partitioning.partition(of: owner)))
    }

    func route(for owner: SyncID) throws(FanOutError) -> Route {
        let partition = isSplitByPartition ? connections.partitioning.partition(of: owner) : nil
        return Route(fanOut: try fanOut(for: owner), partition: partition)
    }

    /// Excludes a fan-out for the owners it failed; throws the failure where another fan-out would not help.
    mutating func exclude(
        _ fanOut: Int, for owners: some Sequence<SyncID>, after failure: RemoteFanOut.Failure
    ) throws(FanOutError) {
        failures += 1
        switch failure {
        case .lost(let reason):
            lastReason = reason
            excludedFanOuts.insert(fanOut)
        case .failed(.notReady(let reason)):
            lastReason = reason
            let partitions = Set(owners.map { connections.partitioning.partition(of: $0) })
            if partitions.count > 1 {
                // One of them is not ready: separate requests show which.
                isSplitByPartition = true
            } else {
                for partition in partitions { excludedRoutes.insert(Route(fanOut: fanOut, partition: partition)) }
            }
        case .failed(.closed) where !Task.isCancelled && !connections.state.withLock({ $0.isStopping }):
            lastReason = "the fan-out stops"
            excludedFanOuts.insert(fanOut)
        case .failed(let error): throw error
        }
    }
}
