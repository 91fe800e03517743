/// Why a value cannot be stored in its column; the message names limits, never the value.
package enum ValueRefusal: Error, Sendable, Hashable {
    /// Another type, out of range, too long, with NUL, or null where the column is not nullable.
    case invalid(String)
    /// More bytes than any value may have.
    case tooLarge(maximum: Int)
}
