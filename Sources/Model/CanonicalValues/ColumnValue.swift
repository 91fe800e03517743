/// A value as a database's column holds it.
///
/// The bytes are lent: they live as long as the closure that a value is handed to.
package enum ColumnValue: ~Escapable {
    /// No value.
    case null
    /// An integer, or a boolean as 0 or 1.
    case integer(Int64)
    /// A finite floating-point number, never `-0`.
    case real(Double)
    /// UTF-8: a text without its JSON escapes, and decimals, UUIDs, timestamps, dates and JSON in canonical form.
    case text(Span<UInt8>)
    /// Bytes.
    case bytes(Span<UInt8>)
}

/// Why JSON is no canonical value of a column: ingest admits no such thing, so whoever sees this stops (I4).
package struct CanonicalValueError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name of the type that the value is not of; never the value.
    package let type: String

    /// States an error.
    package init(type: String) {
        self.type = type
    }

    /// The reason.
    package var description: String { "the value is not in the canonical form of \(type)" }
}
