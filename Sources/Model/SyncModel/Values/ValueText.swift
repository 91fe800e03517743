import JSONText

/// Decimal numbers in strings.
enum DecimalText {
    /// Whether a text is a number by JSON's grammar, with leading zeros and a plus allowed.
    static func isNumber(_ text: Span<UInt8>) -> Bool {
        var index = skipSign(text)
        guard skipDigits(text, &index) else { return false }
        if index < text.count, text[index] == UInt8(ascii: ".") {
            index += 1
            guard skipDigits(text, &index) else { return false }
        }
        if index < text.count, text[index] | 0x20 == UInt8(ascii: "e") {
            index += 1
            if index < text.count, text[index] == UInt8(ascii: "+") || text[index] == UInt8(ascii: "-") { index += 1 }
            guard skipDigits(text, &index) else { return false }
        }
        return index == text.count
    }

    /// Whether a text is an optional sign and digits.
    static func isWholeNumber(_ text: Span<UInt8>) -> Bool {
        var index = skipSign(text)
        return skipDigits(text, &index) && index == text.count
    }

    private static func skipSign(_ text: Span<UInt8>) -> Int {
        text.count > 0 && (text[0] == UInt8(ascii: "-") || text[0] == UInt8(ascii: "+")) ? 1 : 0
    }

    private static func skipDigits(_ text: Span<UInt8>, _ index: inout Int) -> Bool {
        let start = index
        while index < text.count, text[index].isDigit { index += 1 }
        return index > start
    }
}

/// Fast checks for JSON numbers that are already canonical, as most are.
enum PlainNumber {
    /// Doubles distinguish all decimals of up to 15 digits.
    private static let maximumDigits = 15

    /// Whether a number is an integer in canonical form; may return false for one that is.
    static func isWhole(_ text: Span<UInt8>) -> Bool {
        guard text.count <= maximumDigits, !isMinusZero(text) else { return false }
        for index in text.indices where !text[index].isDigit && !(index == 0 && text[0] == UInt8(ascii: "-")) {
            return false
        }
        return true
    }

    /// Whether a number is the canonical, shortest spelling of its double; may return false for one that is.
    ///
    /// A decimal of up to 15 digits that does not end in zero is the shortest for its double.
    static func isShortest(_ text: Span<UInt8>) -> Bool {
        // Besides the digits there may be a sign and a point.
        guard text.count <= maximumDigits + 2, !isMinusZero(text) else { return false }
        var point: Int?
        var digits = 0
        for index in text.indices {
            switch text[index] {
            case UInt8(ascii: "."): point = index
            case UInt8(ascii: "-"): if index > 0 { return false }
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digits += 1
            default: return false
            }
        }
        guard digits <= maximumDigits else { return false }
        guard let point else { return true }
        guard text[text.count - 1] != UInt8(ascii: "0") else { return false }
        // Below 10^-6 the canonical form has an exponent.
        let isBelowOne = text[point - 1] == UInt8(ascii: "0") && (point == 1 || text[point - 2] == UInt8(ascii: "-"))
        guard isBelowOne else { return true }
        for index in point + 1..<min(point + 7, text.count) where text[index] != UInt8(ascii: "0") { return true }
        return false
    }

    private static func isMinusZero(_ text: Span<UInt8>) -> Bool {
        text.count == 2 && text[0] == UInt8(ascii: "-") && text[1] == UInt8(ascii: "0")
    }
}

/// UUIDs in strings.
enum UUIDText {
    /// Appends the canonical form with quotes; false when the text is not 32 hexadecimal digits, with hyphens at the
    /// usual positions or without any.
    static func append(_ text: Span<UInt8>, to bytes: inout [UInt8]) -> Bool {
        guard text.count == 36 || text.count == 32 else { return false }
        bytes.append(CanonicalForm.quote)
        var digits = 0
        for index in text.indices {
            let isHyphenPlace = text.count == 36 && (index == 8 || index == 13 || index == 18 || index == 23)
            if isHyphenPlace {
                guard text[index] == UInt8(ascii: "-") else { return false }
                continue
            }
            guard let digit = lowered(text[index]) else { return false }
            if digits == 8 || digits == 12 || digits == 16 || digits == 20 { bytes.append(UInt8(ascii: "-")) }
            bytes.append(digit)
            digits += 1
        }
        bytes.append(CanonicalForm.quote)
        return true
    }

    private static func lowered(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): byte
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte | 0x20
        default: nil
        }
    }
}

enum Base64Text {
    /// The text in the standard alphabet with padding; accepts the URL-safe alphabet and missing padding.
    static func standard(_ text: Span<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count + 3)
        for index in text.indices {
            switch text[index] {
            case UInt8(ascii: "-"): bytes.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): bytes.append(UInt8(ascii: "/"))
            default: bytes.append(text[index])
            }
        }
        while bytes.count % 4 != 0 { bytes.append(UInt8(ascii: "=")) }
        return bytes
    }
}

extension Int64 {
    /// `nil` when the number is not whole or does not fit.
    init?(_ decimal: borrowing JSONDecimal) {
        guard let whole = decimal.wholeNumber else { return nil }
        if whole.isNegative {
            guard whole.magnitude <= Int64.min.magnitude else { return nil }
            self = whole.magnitude == Int64.min.magnitude ? .min : -Int64(whole.magnitude)
        } else {
            guard let number = Int64(exactly: whole.magnitude) else { return nil }
            self = number
        }
    }
}
