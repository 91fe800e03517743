import SyncModel

/// All partitions or those with given numbers, so that several fan-outs can share the partitions.
package struct PartitionSelection: Sendable, Hashable, CustomStringConvertible {
    package struct OutOfRange: Error, CustomStringConvertible {
        package let description: String
    }

    package static let all = PartitionSelection(ranges: nil)

    /// The greatest number that is parsed, far above the number of partitions.
    static let maximum = 99_999

    /// Ascending, neither overlapping nor adjacent; `nil` for all.
    private let ranges: [ClosedRange<Int>]?

    private init(ranges: [ClosedRange<Int>]?) { self.ranges = ranges }

    /// Parses `all`, or numbers and ranges separated by commas, as in `0-31,40`.
    ///
    /// Duplicates are allowed.
    ///
    /// - Returns: `nil` for any other text.
    package init?(_ text: String) {
        if text.utf8.elementsEqual("all".utf8) {
            self = .all
            return
        }
        var read: [ClosedRange<Int>] = []
        for element in text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
            let ends = Array(element.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false))
            guard ends.count <= 2, let first = Self.number(ends[0]), let last = Self.number(ends[ends.count - 1]),
                first <= last
            else { return nil }
            read.append(first...last)
        }
        var ranges: [ClosedRange<Int>] = []
        for range in read.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let before = ranges.last, range.lowerBound <= before.upperBound + 1 {
                ranges[ranges.count - 1] = before.lowerBound...max(before.upperBound, range.upperBound)
            } else {
                ranges.append(range)
            }
        }
        self.ranges = ranges
    }

    /// In the form that ``init(_:)`` parses, ascending.
    package var description: String {
        guard let ranges else { return "all" }
        return ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
            .joined(separator: ",")
    }

    /// The selected partitions, ascending; at least one.
    ///
    /// - Parameter key: the setting to name in the error.
    /// - Throws: ``OutOfRange`` when a partition does not exist.
    package func numbers(
        in history: History, namedBy key: String = "fanout.partitions"
    ) throws(OutOfRange) -> [Int] {
        guard let ranges else { return Array(0..<history.partitions) }
        let beyond = ranges.compactMap { range in
            range.upperBound >= history.partitions ? max(range.lowerBound, history.partitions)...range.upperBound : nil
        }
        guard beyond.isEmpty else {
            throw OutOfRange(
                description: "\(key) names \(PartitionSelection(ranges: beyond)); there are "
                    + "\(history.partitions) partitions, numbered from 0 to \(history.partitions - 1)")
        }
        return ranges.flatMap(Array.init)
    }

    private static func number(_ text: Substring.UTF8View) -> Int? {
        let digits = text.drop { $0 == UInt8(ascii: " ") }
        let end = digits.reversed().drop { $0 == UInt8(ascii: " ") }.count
        let plain = digits.prefix(end)
        guard !plain.isEmpty, plain.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let number = Int(Substring(plain)), number <= maximum
        else { return nil }
        return number
    }
}
