import JSONText
import SyncModel

/// Turns what columns of databases hold back into canonical JSON: the same bytes that ``CanonicalValueReader`` was given.
package struct CanonicalValueWriter: Sendable {
    /// The canonical JSON of the last value.
    package private(set) var json: [UInt8] = []

    /// Makes a writer without a buffer; it comes with the first value.
    package init() {}

    /// Writes NULL.
    package mutating func writeNull() {
        json.removeAll(keepingCapacity: true)
        json.append(contentsOf: "null".utf8)
    }

    /// Writes an integer: a number within ±(2^53-1), else a string.
    package mutating func write(integer value: Int64) {
        json.removeAll(keepingCapacity: true)
        if value.magnitude < 1 << 53 {
            json.appendJSONNumber(value)
        } else {
            json.append(UInt8(ascii: "\""))
            json.appendJSONNumber(value)
            json.append(UInt8(ascii: "\""))
        }
    }

    /// Writes a boolean.
    package mutating func write(boolean value: Bool) {
        json.removeAll(keepingCapacity: true)
        json.append(contentsOf: (value ? "true" : "false").utf8)
    }

    /// Writes a floating-point number: the shortest spelling that reads back the same.
    ///
    /// - Throws: ``CanonicalValueError`` for infinities and NaN, which JSON cannot spell.
    package mutating func write(real value: Double) throws(CanonicalValueError) {
        guard value.isFinite else { throw CanonicalValueError(type: "real") }
        json.removeAll(keepingCapacity: true)
        json.appendJSONNumber(value)
    }

    /// Writes UTF-8 as a string, or as it is where the type is `json`.
    package mutating func write(text: Span<UInt8>, as type: ColumnType) {
        json.removeAll(keepingCapacity: true)
        switch type {
        case .json: json.append(text)
        default: json.appendJSONString(text)
        }
    }

    /// Writes bytes as a string of base64.
    package mutating func write(bytes: Span<UInt8>) {
        json.removeAll(keepingCapacity: true)
        json.append(UInt8(ascii: "\""))
        Base64.encode(bytes, into: &json)
        json.append(UInt8(ascii: "\""))
    }
}
