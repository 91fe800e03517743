import Synchronization

/// How much of what the partitions of a process have decided the tables do not hold yet, all together.
final class OverlayBudget: Sendable {
    private let limit: Int
    private let size = Atomic(0)

    /// - Parameter limit: in bytes.
    init(limit: Int) { self.limit = limit }

    /// Notes that a partition has so many bytes more, or less.
    func add(_ bytes: Int) { size.add(bytes, ordering: .relaxed) }

    /// Whether partitions that have something to write should write it first.
    var isFull: Bool { size.load(ordering: .relaxed) > limit }
}
