/// A difference from what the log gives: where, and both sides as text.
package struct Difference: Sendable, Hashable, CustomStringConvertible {
    /// What differs: a row with its column, a record with its offset.
    package let item: String
    /// What the log gives.
    package let expected: String
    package let found: String

    package init(_ item: String, expected: String, found: String) {
        self.item = item
        self.expected = expected
        self.found = found
    }

    package var description: String { "\(item): expected \(expected), found \(found)" }
}

/// The result of one comparison.
package enum Finding: Sendable, Hashable {
    /// No difference; the text says what was compared.
    case equal(String)
    /// The first difference, and how many there are.
    case different(Difference, count: Int)
    /// Could not be compared; the text says why and what to do.
    case unknown(String)
}

/// Keeps the first difference and counts the others.
struct Differences: Sendable {
    private(set) var first: Difference?
    private(set) var count = 0

    mutating func add(_ difference: @autoclosure () -> Difference) {
        if first == nil { first = difference() }
        count += 1
    }

    func finding(equal: @autoclosure () -> String) -> Finding {
        first.map { .different($0, count: count) } ?? .equal(equal())
    }
}

package struct Report: Sendable, Hashable {
    package struct Line: Sendable, Hashable {
        /// What was compared, such as `tables`.
        package let subject: String
        package let finding: Finding
    }

    /// `nil` for all partitions together.
    package let partition: Int?
    package internal(set) var lines: [Line] = []

    mutating func add(_ subject: String, _ finding: Finding) {
        lines.append(Line(subject: subject, finding: finding))
    }
}
