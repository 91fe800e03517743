import JSONText
import SyncModel

/// Converts canonical JSON to the values of database columns.
///
/// Checks only what it reads anyway: ingest guarantees that the JSON is canonical. One reader converts many values and
/// reuses its buffer.
package struct CanonicalValueReader: Sendable {
    /// The unescaped text or decoded bytes of one value; as large as the largest value.
    private var scratch: [UInt8] = []

    /// The buffer is allocated by the first value that needs it.
    package init() {}

    /// Passes the value to a closure.
    ///
    /// - Throws: ``CanonicalValueError`` when the JSON is not of the type, and errors of the closure.
    package mutating func read<Result>(
        _ json: UnsafeBufferPointer<UInt8>, as type: ColumnType, _ body: (borrowing ColumnValue) throws -> Result
    ) throws -> Result {
        // No other canonical JSON begins with this letter.
        if json.first == UInt8(ascii: "n") { return try body(.null) }
        switch type {
        case .integer:
            guard let value = Self.integer(json) else { throw CanonicalValueError(type: type.name) }
            return try body(.integer(value))
        case .real:
            let text = String(decoding: json, as: UTF8.self)
            guard let value = Double(text), value.isFinite else { throw CanonicalValueError(type: type.name) }
            // Adding 0 turns -0 into 0 and changes no other number.
            return try body(.real(value + 0))
        case .boolean:
            if json.elementsEqual(Self.true) { return try body(.integer(1)) }
            guard json.elementsEqual(Self.false) else { throw CanonicalValueError(type: type.name) }
            return try body(.integer(0))
        case .text, .decimal, .uuid, .timestamp, .date:
            guard let content = Self.content(json) else { throw CanonicalValueError(type: type.name) }
            guard content.contains(UInt8(ascii: "\\")) else { return try body(.text(content.span)) }
            scratch.removeAll(keepingCapacity: true)
            guard scratch.appendUnescaped(content) else { throw CanonicalValueError(type: type.name) }
            return try body(.text(scratch.span))
        case .bytes:
            scratch.removeAll(keepingCapacity: true)
            guard let content = Self.content(json), Base64.decode(content.span, into: &scratch) else {
                throw CanonicalValueError(type: type.name)
            }
            return try body(.bytes(scratch.span))
        case .json:
            guard !json.isEmpty else { throw CanonicalValueError(type: type.name) }
            return try body(.text(json.span))
        }
    }

    private static let `true` = Array("true".utf8)
    private static let `false` = Array("false".utf8)

    /// The content of a string between its quotes.
    private static func content(_ json: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8>? {
        let quote = UInt8(ascii: "\"")
        guard json.count >= 2, json[0] == quote, json[json.count - 1] == quote else { return nil }
        return UnsafeBufferPointer(rebasing: json[1..<json.count - 1])
    }

    /// An integer, in quotes beyond ±(2^53-1).
    private static func integer(_ json: UnsafeBufferPointer<UInt8>) -> Int64? {
        let digits = content(json) ?? json
        var index = 0
        let isNegative = !digits.isEmpty && digits[0] == UInt8(ascii: "-")
        if isNegative { index = 1 }
        guard index < digits.count else { return nil }
        // Accumulates negatively, since the least integer has no positive counterpart.
        var value: Int64 = 0
        while index < digits.count {
            let digit = digits[index] &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            let (shifted, isTooSmall) = value.multipliedReportingOverflow(by: 10)
            let (sum, isTooSmallToo) = shifted.subtractingReportingOverflow(Int64(digit))
            if isTooSmall || isTooSmallToo { return nil }
            value = sum
            index += 1
        }
        if isNegative { return value }
        return value == .min ? nil : -value
    }
}

extension [UInt8] {
    /// Appends the unescaped content of a canonical JSON string; `false` for an escape that is not canonical.
    fileprivate mutating func appendUnescaped(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        var start = 0
        while start < text.count {
            let end = text[start...].firstIndex(of: UInt8(ascii: "\\")) ?? text.count
            append(contentsOf: UnsafeBufferPointer(rebasing: text[start..<end]))
            if end == text.count { break }
            guard end + 1 < text.count else { return false }
            start = end + 2
            switch text[end + 1] {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): append(text[end + 1])
            case UInt8(ascii: "b"): append(0x08)
            case UInt8(ascii: "f"): append(0x0C)
            case UInt8(ascii: "n"): append(0x0A)
            case UInt8(ascii: "r"): append(0x0D)
            case UInt8(ascii: "t"): append(0x09)
            case UInt8(ascii: "u"):
                // Other control characters are \u00 and two lower-case digits.
                guard start + 4 <= text.count, text[start] == UInt8(ascii: "0"), text[start + 1] == UInt8(ascii: "0"),
                    let high = Self.digit(text[start + 2]), let low = Self.digit(text[start + 3]), high < 2
                else { return false }
                append(high << 4 | low)
                start += 4
            default: return false
            }
        }
        return true
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
