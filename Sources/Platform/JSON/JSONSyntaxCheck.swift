/// Checks the grammar of RFC 8259 byte by byte.
///
/// simdjson reports neither the position of an error nor whether a rejected number is invalid or too large. This check
/// runs after simdjson has rejected a document, to determine both.
struct JSONSyntaxCheck {
    /// Numbers that simdjson may reject although they are valid: those with more than 15 characters or an exponent.
    private(set) var unusualNumbers: [Range<Int>] = []

    private let maximumDepth: Int
    private var position = 0
    /// The closing brackets of the open arrays and objects; at most `maximumDepth`.
    private var open: [UInt8] = []

    init(maximumDepth: Int) {
        self.maximumDepth = maximumDepth
    }

    mutating func run(_ bytes: Span<UInt8>) throws(JSONError) {
        if bytes.count >= 3 && bytes[0] == 0xEF && bytes[1] == 0xBB && bytes[2] == 0xBF {
            throw JSONError(.byteOrderMark, at: 0)
        }
        skipSpace(bytes)
        if position == bytes.count { throw JSONError(.empty, at: position) }
        var needsValue = true
        while needsValue || !open.isEmpty {
            if needsValue {
                needsValue = try value(bytes)
            } else {
                needsValue = try separator(bytes)
            }
            skipSpace(bytes)
        }
        if position < bytes.count { throw JSONError(.trailingContent, at: position) }
    }

    /// Reads a scalar, or the beginning of an array or object; returns whether a value must follow.
    private mutating func value(_ bytes: Span<UInt8>) throws(JSONError) -> Bool {
        switch try byte(bytes) {
        case UInt8(ascii: "{"):
            try enter(closing: UInt8(ascii: "}"))
            skipSpace(bytes)
            if try byte(bytes) == UInt8(ascii: "}") { return leave() }
            try name(bytes)
            return true
        case UInt8(ascii: "["):
            try enter(closing: UInt8(ascii: "]"))
            skipSpace(bytes)
            if try byte(bytes) == UInt8(ascii: "]") { return leave() }
            return true
        case UInt8(ascii: "\""): try string(bytes)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try number(bytes)
        case UInt8(ascii: "t"): try literal("true", bytes)
        case UInt8(ascii: "f"): try literal("false", bytes)
        case UInt8(ascii: "n"): try literal("null", bytes)
        default: throw JSONError(.unexpectedByte, at: position)
        }
        return false
    }

    /// Reads what follows a value in an array or object; returns whether a value must follow.
    private mutating func separator(_ bytes: Span<UInt8>) throws(JSONError) -> Bool {
        let next = try byte(bytes)
        if next == open.last { return leave() }
        guard next == UInt8(ascii: ",") else { throw JSONError(.unexpectedByte, at: position) }
        position += 1
        skipSpace(bytes)
        if open.last == UInt8(ascii: "}") { try name(bytes) }
        return true
    }

    private mutating func enter(closing bracket: UInt8) throws(JSONError) {
        if open.count == maximumDepth { throw JSONError(.tooDeep, at: position) }
        open.append(bracket)
        position += 1
    }

    private mutating func leave() -> Bool {
        open.removeLast()
        position += 1
        return false
    }

    private mutating func name(_ bytes: Span<UInt8>) throws(JSONError) {
        guard try byte(bytes) == UInt8(ascii: "\"") else { throw JSONError(.unexpectedByte, at: position) }
        try string(bytes)
        skipSpace(bytes)
        guard try byte(bytes) == UInt8(ascii: ":") else { throw JSONError(.unexpectedByte, at: position) }
        position += 1
        skipSpace(bytes)
    }

    private mutating func number(_ bytes: Span<UInt8>) throws(JSONError) {
        let start = position
        var hasExponent = false
        if bytes[position] == UInt8(ascii: "-") { position += 1 }
        let digits = position
        try skipDigits(bytes)
        if bytes[digits] == UInt8(ascii: "0") && position > digits + 1 { throw JSONError(.invalidNumber, at: start) }
        if position < bytes.count && bytes[position] == UInt8(ascii: ".") {
            position += 1
            try skipDigits(bytes)
        }
        if position < bytes.count && bytes[position] | 0x20 == UInt8(ascii: "e") {
            hasExponent = true
            position += 1
            if position < bytes.count && (bytes[position] == UInt8(ascii: "+") || bytes[position] == UInt8(ascii: "-"))
            {
                position += 1
            }
            try skipDigits(bytes)
        }
        try endOfToken(bytes, .invalidNumber, start: start)
        if hasExponent || position - start > 15 { unusualNumbers.append(start..<position) }
    }

    /// Reads at least one digit.
    private mutating func skipDigits(_ bytes: Span<UInt8>) throws(JSONError) {
        let start = position
        while position < bytes.count && bytes[position].isDigit { position += 1 }
        if position > start { return }
        throw JSONError(position == bytes.count ? .unexpectedEnd : .invalidNumber, at: position)
    }

    private mutating func literal(_ word: StaticString, _ bytes: Span<UInt8>) throws(JSONError) {
        let start = position
        for index in 0..<word.utf8CodeUnitCount {
            if position == bytes.count { throw JSONError(.unexpectedEnd, at: position) }
            // In bounds: `index` is below the word's count.
            if bytes[position] != word.utf8Start[index] { throw JSONError(.invalidLiteral, at: start) }
            position += 1
        }
        try endOfToken(bytes, .invalidLiteral, start: start)
    }

    /// Checks that no letter, digit, sign or point follows; the caller reports other bytes.
    private func endOfToken(
        _ bytes: Span<UInt8>, _ reason: JSONError.Reason, start: Int
    ) throws(JSONError) {
        guard position < bytes.count else { return }
        switch bytes[position] {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "+"), UInt8(ascii: "-"):
            throw JSONError(reason, at: start)
        default: return
        }
    }

    private mutating func string(_ bytes: Span<UInt8>) throws(JSONError) {
        position += 1
        while true {
            switch try byte(bytes) {
            case UInt8(ascii: "\""):
                position += 1
                return
            case UInt8(ascii: "\\"): try escape(bytes)
            case 0..<0x20: throw JSONError(.controlCharacter, at: position)
            case 0x20..<0x80: position += 1
            default: try scalar(bytes)
            }
        }
    }

    private mutating func escape(_ bytes: Span<UInt8>) throws(JSONError) {
        let start = position
        position += 1
        switch try byte(bytes) {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 1
        case UInt8(ascii: "u"):
            let unit = try hexadecimal(bytes, start: start)
            if unit & 0xFC00 == 0xDC00 { throw JSONError(.loneSurrogate, at: start) }
            guard unit & 0xFC00 == 0xD800 else { return }
            guard position + 1 < bytes.count, bytes[position] == UInt8(ascii: "\\"),
                bytes[position + 1] == UInt8(ascii: "u")
            else { throw JSONError(.loneSurrogate, at: start) }
            let second = position
            position += 1
            guard try hexadecimal(bytes, start: second) & 0xFC00 == 0xDC00 else {
                throw JSONError(.loneSurrogate, at: start)
            }
        default: throw JSONError(.invalidEscape, at: start)
        }
    }

    /// Reads `u` and four digits.
    private mutating func hexadecimal(_ bytes: Span<UInt8>, start: Int) throws(JSONError) -> UInt16 {
        position += 1
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = try byte(bytes).hexadecimalDigit else { throw JSONError(.invalidEscape, at: start) }
            unit = unit << 4 | UInt16(digit)
            position += 1
        }
        return unit
    }

    /// Reads a scalar of two to four bytes (Unicode standard, table 3-7).
    private mutating func scalar(_ bytes: Span<UInt8>) throws(JSONError) {
        let start = position
        let (count, second): (Int, ClosedRange<UInt8>) =
            switch bytes[position] {
            case 0xC2...0xDF: (2, 0x80...0xBF)
            case 0xE0: (3, 0xA0...0xBF)
            case 0xE1...0xEC, 0xEE...0xEF: (3, 0x80...0xBF)
            case 0xED: (3, 0x80...0x9F)
            case 0xF0: (4, 0x90...0xBF)
            case 0xF1...0xF3: (4, 0x80...0xBF)
            case 0xF4: (4, 0x80...0x8F)
            default: throw JSONError(.invalidUTF8, at: start)
            }
        guard start + count <= bytes.count, second.contains(bytes[start + 1]) else {
            throw JSONError(.invalidUTF8, at: start)
        }
        for index in 2..<count where bytes[start + index] & 0xC0 != 0x80 {
            throw JSONError(.invalidUTF8, at: start)
        }
        position += count
    }

    private func byte(_ bytes: Span<UInt8>) throws(JSONError) -> UInt8 {
        guard position < bytes.count else { throw JSONError(.unexpectedEnd, at: position) }
        return bytes[position]
    }

    private mutating func skipSpace(_ bytes: Span<UInt8>) {
        while position < bytes.count && bytes[position].isSpace { position += 1 }
    }
}

extension UInt8 {
    /// White space in JSON.
    @inlinable var isSpace: Bool { self == 0x20 || self == 0x0A || self == 0x0D || self == 0x09 }

    var hexadecimalDigit: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
