/// A value in the form that database columns store.
///
/// The bytes are borrowed for the duration of the closure that receives the value.
package enum ColumnValue: ~Escapable {
    case null
    /// An integer, or a boolean as 0 or 1.
    case integer(Int64)
    /// A finite floating-point number, never `-0`.
    case real(Double)
    /// UTF-8: a text without its JSON escapes, and decimals, UUIDs, timestamps, dates and JSON in canonical form.
    case text(Span<UInt8>)
    case bytes(Span<UInt8>)
}

/// The JSON is not a canonical value of its column.
///
/// Ingest admits only canonical values, so the reader stops (I4).
package struct CanonicalValueError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The expected type; never the value.
    package let type: String

    package init(type: String) {
        self.type = type
    }

    package var description: String { "the value is not in the canonical form of \(type)" }
}
