/// Walks over a text of digits and separators.
struct DigitScanner: ~Escapable {
    private let text: Span<UInt8>
    private(set) var offset = 0

    @_lifetime(copy text)
    init(_ text: Span<UInt8>) { self.text = text }

    var isAtEnd: Bool { offset == text.count }

    /// The next byte.
    @_lifetime(self: copy self)
    mutating func next() -> UInt8? {
        guard offset < text.count else { return nil }
        defer { offset += 1 }
        return text[offset]
    }

    /// The next byte if it is a digit.
    @_lifetime(self: copy self)
    mutating func digit() -> Int? {
        guard offset < text.count, case let digit = text[offset] &- UInt8(ascii: "0"), digit <= 9 else { return nil }
        offset += 1
        return Int(digit)
    }

    /// A number of exactly so many digits.
    @_lifetime(self: copy self)
    mutating func number(digits: Int, below limit: Int) -> Int? {
        var value = 0
        for _ in 0..<digits {
            guard let digit = digit() else { return nil }
            value = value * 10 + digit
        }
        return value < limit ? value : nil
    }

    /// Steps over a byte; false when another one, or none, comes.
    @_lifetime(self: copy self)
    mutating func skip(_ byte: Unicode.Scalar) -> Bool {
        guard offset < text.count, text[offset] == UInt8(ascii: byte) else { return false }
        offset += 1
        return true
    }
}
