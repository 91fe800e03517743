import Synchronization

/// A number that only grows: things done since the process started.
///
/// Adding is one relaxed atomic add, from any thread.
package final class Counter: Sendable {
    private let total = Atomic<Int>(0)

    /// Starts at 0, known to no registry.
    package init() {}

    /// Adds what was done, 0 or more.
    package func add(_ count: Int = 1) {
        assert(count >= 0, "a counter only grows")
        total.wrappingAdd(count, ordering: .relaxed)
    }

    /// What was added so far.
    package var value: Int { total.load(ordering: .relaxed) }
}

/// A number that goes up and down: what there is now.
///
/// Setting and adding are one relaxed atomic operation, from any thread.
package final class Gauge: Sendable {
    /// Stands for a value that nobody has set yet.
    private static let unknown = Int.min

    private let current: Atomic<Int>

    /// Starts with a value, or without one: then nothing is shown until it is set.
    package init(_ value: Int? = 0) { current = Atomic(value ?? Self.unknown) }

    /// Sets the value.
    package func set(_ value: Int) { current.store(value, ordering: .relaxed) }

    /// Says that the value is not known any more; nothing is shown until it is set again.
    package func forget() { current.store(Self.unknown, ordering: .relaxed) }

    /// Adds to a value that is known; a negative difference takes away.
    package func add(_ difference: Int) { current.wrappingAdd(difference, ordering: .relaxed) }

    /// The value, `nil` while it is not known.
    package var value: Int? {
        let value = current.load(ordering: .relaxed)
        return value == Self.unknown ? nil : value
    }
}
