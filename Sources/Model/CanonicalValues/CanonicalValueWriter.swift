import JSONText
import SyncModel

/// Converts values of database columns back to canonical JSON: the same bytes that ``CanonicalValueReader`` read.
package struct CanonicalValueWriter: Sendable {
    /// Of the last value written.
    package private(set) var json: [UInt8] = []

    /// The buffer is allocated by the first value.
    package init() {}

    package mutating func writeNull() {
        json.removeAll(keepingCapacity: true)
        json.append(contentsOf: "null".utf8)
    }

    /// A number within ±(2^53-1), else a string.
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

    package mutating func write(boolean value: Bool) {
        json.removeAll(keepingCapacity: true)
        json.append(contentsOf: (value ? "true" : "false").utf8)
    }

    /// The shortest spelling that reads back as the same number.
    ///
    /// - Throws: ``CanonicalValueError`` for infinities and NaN, which JSON does not have.
    package mutating func write(real value: Double) throws(CanonicalValueError) {
        guard value.isFinite else { throw CanonicalValueError(type: "real") }
        json.removeAll(keepingCapacity: true)
        json.appendJSONNumber(value)
    }

    /// Writes UTF-8 as a string, or unchanged when the type is `json`.
    package mutating func write(text: Span<UInt8>, as type: ColumnType) {
        json.removeAll(keepingCapacity: true)
        switch type {
        case .json: json.append(text)
        default: json.appendJSONString(text)
        }
    }

    /// As a base64 string.
    package mutating func write(bytes: Span<UInt8>) {
        json.removeAll(keepingCapacity: true)
        json.append(UInt8(ascii: "\""))
        Base64.encode(bytes, into: &json)
        json.append(UInt8(ascii: "\""))
    }
}
