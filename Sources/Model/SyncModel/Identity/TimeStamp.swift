/// The integer that ordering gives a change that writes a row: strictly increasing in each partition, below 2^53 (I3).
///
/// 0 stands for "none": a row that does not exist, a vector entry that holds nothing.
package struct TimeStamp: RawRepresentable, Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The number, 0 to 2^53-1.
    package let rawValue: Int64

    /// Wraps a number from outside; `nil` when it is negative or not below 2^53.
    package init?(rawValue: Int64) {
        guard Self.isValid(rawValue) else { return nil }
        self.rawValue = rawValue
    }

    /// Wraps a number that is known to be in range; traps where it is not.
    package init(_ value: Int64) {
        precondition(Self.isValid(value), "a timeStamp is 0 to 2^53-1")
        rawValue = value
    }

    /// No timeStamp.
    package static let zero = TimeStamp(0)

    /// The greatest one: JSON readers hold integers exactly up to here.
    package static let maximum = TimeStamp((1 << 53) - 1)

    /// Ordered as the numbers.
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The number in decimal.
    package var description: String { String(rawValue) }

    private static func isValid(_ value: Int64) -> Bool { value >= 0 && value < 1 << 53 }
}

/// How a partition's timeStamps grow (I3).
///
/// A history keeps the clock it was made with.
package enum TimeStampClock: Sendable, Hashable {
    /// max(previous + 1, microseconds of the log's own time of the `uploads` record): what production uses.
    case logTime
    /// previous + 1, the first change getting the number named: what the netcoresync simulation uses.
    case sequence(first: Int64)

    /// The timeStamp of the next change that writes a row, or `nil` when the partition has used up all below 2^53.
    ///
    /// - Parameters:
    ///   - previous: the partition's newest timeStamp, zero before the first.
    ///   - logTime: microseconds since 1970 that the log gave the `uploads` record.
    package func next(after previous: TimeStamp, logTime: Int64) -> TimeStamp? {
        switch self {
        case .logTime:
            return TimeStamp(rawValue: max(previous.rawValue + 1, logTime))
        case .sequence(let first):
            return TimeStamp(rawValue: max(previous.rawValue + 1, first))
        }
    }
}
