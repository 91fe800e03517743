/// Something that is not as the log makes it: where, and both sides in words.
package struct Difference: Sendable, Hashable, CustomStringConvertible {
    /// What differs: a row with its column, a record with its offset.
    package let item: String
    /// What the log makes of it.
    package let expected: String
    /// What is there.
    package let found: String

    /// States a difference.
    package init(_ item: String, expected: String, found: String) {
        self.item = item
        self.expected = expected
        self.found = found
    }

    /// One line.
    package var description: String { "\(item): expected \(expected), found \(found)" }
}

/// What a comparison of one thing came to.
package enum Finding: Sendable, Hashable {
    /// As the log makes it; the text says what was compared.
    case equal(String)
    /// Not as the log makes it: the first difference, and how many there are.
    case different(Difference, count: Int)
    /// It cannot be said; the text says why and what to do.
    case unknown(String)
}

/// Differences as they are met: the first is kept, the others are counted.
struct Differences: Sendable {
    private(set) var first: Difference?
    private(set) var count = 0

    mutating func add(_ difference: @autoclosure () -> Difference) {
        if first == nil { first = difference() }
        count += 1
    }

    /// The first difference, or that all is equal.
    func finding(equal: @autoclosure () -> String) -> Finding {
        first.map { .different($0, count: count) } ?? .equal(equal())
    }
}

/// What was found in one partition, or in all together.
package struct Report: Sendable, Hashable {
    /// One comparison.
    package struct Line: Sendable, Hashable {
        /// What was compared, in a word.
        package let subject: String
        /// What it came to.
        package let finding: Finding
    }

    /// The partition; `nil` for what spans all of them.
    package let partition: Int?
    /// The comparisons, in the order in which they were made.
    package internal(set) var lines: [Line] = []

    mutating func add(_ subject: String, _ finding: Finding) {
        lines.append(Line(subject: subject, finding: finding))
    }
}
