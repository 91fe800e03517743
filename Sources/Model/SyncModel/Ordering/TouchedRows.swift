/// The size of the rows that a part touches, up to the limit of its batch (``OutcomeLimits/maxBatchRowBytes``).
///
/// Rows count in the order in which the part's changes first touch them, each once, with the JSON of its values before the part,
/// lifted to the partition's schema version; a row that does not exist counts with the defaults that a creation stores. The row
/// that reaches the limit is still processed, so every part has a row that is. Changes to rows that come after it are refused
/// whatever these rows are: nothing beyond the limit is read.
package struct TouchedRows: Sendable {
    private let limit: Int
    /// In bytes.
    package private(set) var size = 0

    /// - Parameter limit: in bytes, at least 1.
    package init(limit: Int) { self.limit = limit }

    /// Whether changes to further rows are refused.
    package var isFull: Bool { size >= limit }

    /// Counts a row, in bytes.
    package mutating func add(_ bytes: Int) { size += bytes }
}

extension ChangePart {
    /// The limit of ``TouchedRows``; rules version 1 has none.
    package var batchRowLimit: Int { rules >= 2 ? maxBatchRowBytes : .max }
}
