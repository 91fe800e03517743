/// The integer that ordering gives a change that writes a row: strictly increasing in each partition, below 2^53 (I3).
///
/// 0 means none: a row that does not exist, a vector entry for which the device holds nothing.
package struct TimeStamp: RawRepresentable, Sendable, Hashable, Comparable, CustomStringConvertible {
    /// 0 to 2^53-1.
    package let rawValue: Int64

    /// Validates a number from outside; `nil` when it is negative or not below 2^53.
    package init?(rawValue: Int64) {
        guard Self.isValid(rawValue) else { return nil }
        self.rawValue = rawValue
    }

    /// Traps when the number is out of range.
    package init(_ value: Int64) {
        precondition(Self.isValid(value), "a timeStamp is 0 to 2^53-1")
        rawValue = value
    }

    package static let zero = TimeStamp(0)

    /// The largest integer that JSON readers represent exactly.
    package static let maximum = TimeStamp((1 << 53) - 1)

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    package var description: String { String(rawValue) }

    private static func isValid(_ value: Int64) -> Bool { value >= 0 && value < 1 << 53 }
}

/// The rule by which ordering assigns timeStamps (I3).
///
/// It is fixed when the topics are created.
package enum TimeStampClock: Sendable, Hashable {
    /// max(previous + 1, log timestamp of the `uploads` record in microseconds). Used in production.
    case logTime
    /// previous + 1, starting at `first`. Used by the netcoresync simulation.
    case sequence(first: Int64)

    /// The timeStamp of the next change that writes a row; `nil` when the next one would reach 2^53.
    ///
    /// - Parameters:
    ///   - previous: the partition's newest timeStamp, zero before the first.
    ///   - logTime: log timestamp of the `uploads` record, microseconds since 1970.
    package func next(after previous: TimeStamp, logTime: Int64) -> TimeStamp? {
        switch self {
        case .logTime:
            return TimeStamp(rawValue: max(previous.rawValue + 1, logTime))
        case .sequence(let first):
            return TimeStamp(rawValue: max(previous.rawValue + 1, first))
        }
    }
}
