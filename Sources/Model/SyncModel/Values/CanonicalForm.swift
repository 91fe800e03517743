import JSONText

/// Converts values of one column to the canonical form of its type, which is stored and sent (client contract).
///
/// Each method takes a JSON value, appends canonical JSON, and returns whether the value counts as altered: it had
/// another spelling or another JSON type. Another spelling of a JSON number does not count. After a refusal `bytes` may
/// end with a part of the value.
package struct CanonicalForm: Sendable {
    package let column: Column
    /// The maximum size of a number, string or `json` value as canonical JSON, in bytes.
    package let maximumBytes: Int

    /// The maximum nesting of a `json` value; below the limit of every store.
    package static let maximumDepth = 64

    package init(_ column: Column, maximumBytes: Int) {
        self.column = column
        self.maximumBytes = maximumBytes
    }

    /// Throws when the column is not nullable.
    package func appendNull(to bytes: inout [UInt8]) throws(ValueRefusal) -> Bool {
        guard column.isNullable else { throw .invalid("\(column.name) is not nullable") }
        bytes.append(contentsOf: "null".utf8)
        return false
    }

    package func append(_ value: Bool, to bytes: inout [UInt8]) throws(ValueRefusal) -> Bool {
        guard column.type == .boolean else { throw wrongType }
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
        return false
    }

    /// - Parameter text: a number by JSON's grammar.
    package func append(number text: Span<UInt8>, to bytes: inout [UInt8]) throws(ValueRefusal) -> Bool {
        let start = bytes.count
        let isAltered: Bool
        switch column.type {
        case .integer where PlainNumber.isWhole(text), .real where PlainNumber.isShortest(text):
            bytes.append(text)
            isAltered = false
        case .integer:
            guard let number = Int64(JSONDecimal(text)) else { throw .invalid("\(column.name) takes 64-bit integers") }
            isAltered = append(integer: number, isNumber: true, to: &bytes)
        case .real: isAltered = try append(real: text, to: &bytes)
        case .decimal(let precision, let scale):
            try append(JSONDecimal(text), precision: precision, scale: scale, to: &bytes)
            // The canonical form is a JSON string.
            isAltered = true
        default: throw wrongType
        }
        try check(size: bytes.count - start)
        return isAltered
    }

    /// - Parameter text: the content of a string without escapes, UTF-8.
    package func append(string text: Span<UInt8>, to bytes: inout [UInt8]) throws(ValueRefusal) -> Bool {
        guard text.count <= maximumBytes else { throw .tooLarge(maximum: maximumBytes) }
        let start = bytes.count
        let isAltered: Bool
        switch column.type {
        case .text: isAltered = try append(text: text, to: &bytes)
        case .integer: isAltered = try append(integerText: text, to: &bytes)
        case .decimal(let precision, let scale):
            guard DecimalText.isNumber(text) else { throw .invalid("\(column.name) is no decimal number") }
            try append(JSONDecimal(text), precision: precision, scale: scale, to: &bytes)
            isAltered = differs(text, from: bytes, start)
        case .uuid:
            guard UUIDText.append(text, to: &bytes) else { throw .invalid("\(column.name) is no UUID") }
            isAltered = differs(text, from: bytes, start)
        case .timestamp:
            guard let moment = CanonicalTimestamp(text) else {
                throw .invalid("\(column.name) is no RFC 3339 time of the years 0001 to 9999 with at most 6 decimals")
            }
            bytes.append(Self.quote)
            if moment.isCanonical {
                bytes.append(text)
            } else {
                CanonicalTimestamp.append(moment.microseconds, to: &bytes)
            }
            bytes.append(Self.quote)
            isAltered = !moment.isCanonical
        case .date:
            guard CalendarDate(text) != nil else { throw .invalid("\(column.name) is no date YYYY-MM-DD") }
            bytes.appendJSONString(text)
            isAltered = false
        case .bytes: isAltered = try append(base64: text, to: &bytes)
        case .real, .boolean, .json: throw wrongType
        }
        try check(size: bytes.count - start)
        return isAltered
    }

    /// Appends a value of type `json` that is already canonical: no white space, strings with only the escapes that the
    /// grammar requires, keys in the order sent, no duplicate keys, no NUL.
    ///
    /// Returns false: the caller knows whether the original spelling differed.
    package func append(minified json: Span<UInt8>, to bytes: inout [UInt8]) throws(ValueRefusal) -> Bool {
        guard column.type == .json else { throw wrongType }
        try check(size: json.count)
        if let maximum = column.maximumLength, json.count > maximum {
            throw .invalid("\(column.name) takes at most \(maximum) bytes of JSON")
        }
        bytes.append(json)
        return false
    }

    static let quote = UInt8(ascii: "\"")

    /// The refusal of a value whose JSON type the column does not accept.
    package var wrongType: ValueRefusal { .invalid("\(column.name) takes \(column.type.expectation)") }

    private func check(size: Int) throws(ValueRefusal) {
        guard size <= maximumBytes else { throw .tooLarge(maximum: maximumBytes) }
    }

    /// Whether a text differs from what was appended between quotes since `start`.
    private func differs(_ text: Span<UInt8>, from bytes: [UInt8], _ start: Int) -> Bool {
        guard text.count == bytes.count - start - 2 else { return true }
        for index in text.indices where text[index] != bytes[start + 1 + index] { return true }
        return false
    }

    // MARK: Types

    private func append(text: Span<UInt8>, to bytes: inout [UInt8]) throws(ValueRefusal) -> Bool {
        var scalars = 0
        for index in text.indices {
            if text[index] == 0 { throw .invalid("\(column.name) holds NUL") }
            if text[index] & 0xC0 != 0x80 { scalars += 1 }
        }
        if let maximum = column.maximumLength, scalars > maximum {
            throw .invalid("\(column.name) takes at most \(maximum) characters")
        }
        bytes.appendJSONString(text)
        return false
    }

    /// Beyond ±(2^53-1) JSON readers lose digits of numbers, so larger integers are strings.
    private func append(integer: Int64, isNumber: Bool, to bytes: inout [UInt8]) -> Bool {
        if integer.magnitude < 1 << 53 {
            bytes.appendJSONNumber(integer)
            return !isNumber
        }
        bytes.append(Self.quote)
        bytes.appendJSONNumber(integer)
        bytes.append(Self.quote)
        return isNumber
    }

    private func append(integerText text: Span<UInt8>, to bytes: inout [UInt8]) throws(ValueRefusal) -> Bool {
        guard DecimalText.isWholeNumber(text), let number = Int64(JSONDecimal(text)) else {
            throw .invalid("\(column.name) takes 64-bit integers")
        }
        let start = bytes.count
        let isAltered = append(integer: number, isNumber: false, to: &bytes)
        return isAltered || differs(text, from: bytes, start)
    }

    private func append(real text: Span<UInt8>, to bytes: inout [UInt8]) throws(ValueRefusal) -> Bool {
        let spelled = text.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
        guard let number = Double(spelled), number.isFinite else {
            throw .invalid("\(column.name) takes finite 64-bit floating-point numbers")
        }
        bytes.appendJSONNumber(number)
        // -0 becomes 0, a different number for devices that distinguish them.
        return number == 0 && number.sign == .minus
    }

    /// Appends exactly `scale` digits after the point.
    ///
    /// A number with more digits is refused, never rounded.
    private func append(
        _ number: borrowing JSONDecimal, precision: Int, scale: Int, to bytes: inout [UInt8]
    ) throws(ValueRefusal) {
        let wholeDigits = number.digitCount + number.exponent
        guard number.digitCount == 0 || (number.exponent >= -scale && wholeDigits <= precision - scale) else {
            throw .invalid(
                "\(column.name) takes \(precision - scale) digits before the point and \(scale) behind it")
        }
        bytes.append(Self.quote)
        if number.isNegative, number.digitCount > 0 { bytes.append(UInt8(ascii: "-")) }
        var position = number.digitRange.lowerBound
        if wholeDigits <= 0 { bytes.append(UInt8(ascii: "0")) }
        for _ in 0..<max(wholeDigits, 0) { bytes.append(Self.nextDigit(of: number, &position)) }
        if scale > 0 {
            bytes.append(UInt8(ascii: "."))
            let zeros = number.digitCount == 0 ? scale : max(-wholeDigits, 0)
            bytes.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: zeros))
            for _ in zeros..<scale { bytes.append(Self.nextDigit(of: number, &position)) }
        }
        bytes.append(Self.quote)
    }

    /// The next digit at or after a position of the number's text, 0 after the last one; advances the position.
    private static func nextDigit(of number: borrowing JSONDecimal, _ position: inout Int) -> UInt8 {
        while position < number.digitRange.upperBound {
            defer { position += 1 }
            if number.text[position].isDigit { return number.text[position] }
        }
        return UInt8(ascii: "0")
    }

    private func append(base64 text: Span<UInt8>, to bytes: inout [UInt8]) throws(ValueRefusal) -> Bool {
        var data: [UInt8] = []
        let isStandard = Base64.decode(text, into: &data)
        if !isStandard, !Base64.decode(Base64Text.standard(text).span, into: &data) {
            throw .invalid("\(column.name) is no base64")
        }
        if let maximum = column.maximumLength, data.count > maximum {
            throw .invalid("\(column.name) takes at most \(maximum) bytes")
        }
        bytes.append(Self.quote)
        Base64.encode(data.span, into: &bytes)
        bytes.append(Self.quote)
        return !isStandard
    }
}

extension ColumnType {
    /// The JSON values that the type accepts, for messages.
    var expectation: String {
        switch self {
        case .text: "a string"
        case .integer: "a 64-bit integer, as a number or a string"
        case .real: "a number"
        case .boolean: "true or false"
        case .decimal: "a decimal number as a string"
        case .uuid: "a UUID as a string"
        case .timestamp: "an RFC 3339 time as a string"
        case .date: "a date YYYY-MM-DD as a string"
        case .bytes: "base64 as a string"
        case .json: "any JSON"
        }
    }
}

/// Why a value cannot be stored in its column.
///
/// Messages name limits, never the value.
package enum ValueRefusal: Error, Sendable, Hashable {
    /// Wrong type, out of range, too long, contains NUL, or null in a column that is not nullable.
    case invalid(String)
    /// More bytes than any value may have.
    case tooLarge(maximum: Int)
}
