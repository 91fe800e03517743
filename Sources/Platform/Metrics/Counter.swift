import Synchronization

/// A monotonic counter; adding is one relaxed atomic operation.
package final class Counter: Sendable {
    private let total = Atomic<Int>(0)

    package init() {}

    /// - Parameter count: 0 or more.
    package func add(_ count: Int = 1) {
        assert(count >= 0, "a counter must not decrease")
        total.wrappingAdd(count, ordering: .relaxed)
    }

    package var value: Int { total.load(ordering: .relaxed) }
}

/// A current value, which may be unknown; setting and adding are one relaxed atomic operation.
package final class Gauge: Sendable {
    private static let unknown = Int.min

    private let current: Atomic<Int>

    /// - Parameter value: `nil`: unknown; an unknown value is not exported.
    package init(_ value: Int? = 0) { current = Atomic(value ?? Self.unknown) }

    package func set(_ value: Int) { current.store(value, ordering: .relaxed) }

    /// Makes the value unknown.
    package func forget() { current.store(Self.unknown, ordering: .relaxed) }

    /// The value must be known; the difference may be negative.
    package func add(_ difference: Int) { current.wrappingAdd(difference, ordering: .relaxed) }

    /// `nil` while it is unknown.
    package var value: Int? {
        let value = current.load(ordering: .relaxed)
        return value == Self.unknown ? nil : value
    }
}
