import JSONText

/// Reads JSON from beginning to end, as the server's answers have it (RFC 8259).
///
/// Foundation's decoders make an object of each value, which takes most of the time of a first sync; this one makes only what is
/// asked for. Each call reads one value or the part of one, and throws for what is not JSON; what was read before is right as far as
/// it goes, so an answer counts only once ``finish()`` has returned.
package struct JSONReader {
    /// What the next value is.
    package enum Kind: Equatable, Sendable {
        case object
        case array
        case string
        case number
        case boolean
        case null
    }

    /// The text is not JSON, or not the value that was expected.
    package struct Malformed: Error, Equatable, Sendable {
        /// In bytes.
        package let position: Int
        package let expected: String
    }

    private let bytes: ArraySlice<UInt8>
    package private(set) var position: Int
    private var depth = 0

    private let maximumDepth: Int

    /// As deep as the server's values are, and its answer around them.
    private static let depthOfAnswers = 128

    package init(_ bytes: [UInt8]) { self.init(bytes[...]) }

    /// Reads a part of another text, whose positions it has.
    init(_ bytes: ArraySlice<UInt8>, maximumDepth: Int = Self.depthOfAnswers) {
        self.bytes = bytes
        self.maximumDepth = maximumDepth
        position = bytes.startIndex
    }

    /// The error that something else was expected here.
    func malformed(_ expected: String) -> Malformed { Malformed(position: position, expected: expected) }

    /// Expects the members that an object must have among those that it has.
    func require(_ names: Set<String>, in found: Set<String>) throws {
        if let missing = names.subtracting(found).min() { throw malformed(missing) }
    }

    /// What was read since a position.
    func bytes(from start: Int) -> ArraySlice<UInt8> { bytes[start..<position] }

    // MARK: Structure

    /// Reads an object: `body` is called for each member, and must read or skip its value.
    package mutating func object(_ body: (inout JSONReader, _ name: String) throws -> Void) throws {
        try members { try body(&$0, String(decoding: $1, as: UTF8.self)) }
    }

    /// Reads an object whose members have their names as UTF-8: `body` is called for each, and must read or skip its value.
    mutating func members(_ body: (inout JSONReader, _ name: ArraySlice<UInt8>) throws -> Void) throws {
        try enter(UInt8(ascii: "{"), "an object")
        defer { depth -= 1 }
        if take(UInt8(ascii: "}")) { return }
        repeat {
            let name = try plainString().map { bytes[$0] } ?? escapedString()[...]
            guard take(UInt8(ascii: ":")) else { throw malformed("a colon") }
            try body(&self, name)
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "}")) else { throw malformed("a comma or the end of an object") }
    }

    /// Reads an array: `body` is called for each element, and must read or skip it.
    package mutating func array(_ body: (inout JSONReader) throws -> Void) throws {
        try enter(UInt8(ascii: "["), "an array")
        defer { depth -= 1 }
        if take(UInt8(ascii: "]")) { return }
        repeat { try body(&self) } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "]")) else { throw malformed("a comma or the end of an array") }
    }

    /// Nothing but white space follows.
    package mutating func finish() throws {
        skipSpace()
        guard position == bytes.endIndex else { throw malformed("the end") }
    }

    private mutating func enter(_ bracket: UInt8, _ expected: String) throws {
        guard take(bracket) else { throw malformed(expected) }
        depth += 1
        guard depth <= maximumDepth else { throw malformed("at most \(maximumDepth) levels") }
    }

    // MARK: Values

    package mutating func kind() throws -> Kind {
        skipSpace()
        guard position < bytes.endIndex else { throw malformed("a value") }
        switch bytes[position] {
        case UInt8(ascii: "{"): return .object
        case UInt8(ascii: "["): return .array
        case UInt8(ascii: "\""): return .string
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return .boolean
        case UInt8(ascii: "n"): return .null
        default: return .number
        }
    }

    package mutating func string() throws -> String {
        if let range = try plainString() { return String(decoding: bytes[range], as: UTF8.self) }
        return String(decoding: try escapedString(), as: UTF8.self)
    }

    /// Reads a string as UTF-8.
    package mutating func stringBytes() throws -> [UInt8] {
        if let range = try plainString() { return Array(bytes[range]) }
        return try escapedString()
    }

    /// Reads a string without escapes, as most are.
    ///
    /// - Returns: where its characters are; `nil`, with nothing read, for one with escapes.
    private mutating func plainString() throws -> Range<Int>? {
        guard take(UInt8(ascii: "\"")) else { throw malformed("a string") }
        // What needs an escape ends the string, begins an escape, or is not allowed.
        let count = bytes[position...].withUnsafeBufferPointer { JSONEscape.next(in: $0, from: 0) }
        let range = position..<(position + count)
        guard range.upperBound < bytes.endIndex else {
            position = bytes.endIndex
            throw malformed("the end of a string")
        }
        switch bytes[range.upperBound] {
        case UInt8(ascii: "\""):
            // ASCII alone is UTF-8.
            guard bytes[range].reduce(0, |) < 0x80 || String(validating: bytes[range], as: UTF8.self) != nil else {
                throw malformed("UTF-8")
            }
            position = range.upperBound + 1
            return range
        case UInt8(ascii: "\\"):
            position -= 1
            return nil
        default:
            position = range.upperBound
            throw malformed("a character that is not a control character")
        }
    }

    private mutating func escapedString() throws -> [UInt8] {
        guard take(UInt8(ascii: "\"")) else { throw malformed("a string") }
        var text: [UInt8] = []
        var start = position
        while position < bytes.endIndex {
            let byte = bytes[position]
            switch byte {
            case UInt8(ascii: "\""):
                text += bytes[start..<position]
                position += 1
                guard String(validating: text, as: UTF8.self) != nil else { throw malformed("UTF-8") }
                return text
            case UInt8(ascii: "\\"):
                text += bytes[start..<position]
                position += 1
                try readEscape(into: &text)
                start = position
            case 0..<0x20: throw malformed("a character that is not a control character")
            default: position += 1
            }
        }
        throw malformed("the end of a string")
    }

    package mutating func integer() throws -> Int64 {
        guard let number = Self.integer(try numberText()) else { throw malformed("an integer") }
        return number
    }

    /// A time of an owner's rows: no server of the contract has others.
    mutating func timeStamp() throws -> Int64 {
        let number = try integer()
        guard 0..<1 << 53 ~= number else { throw malformed("a timeStamp") }
        return number
    }

    /// The integer that a number's text is; `nil` for one with a fraction or an exponent, or beyond 64 bits.
    static func integer(_ text: ArraySlice<UInt8>) -> Int64? {
        var number: Int64 = 0
        let isNegative = text.first == UInt8(ascii: "-")
        for byte in isNegative ? text.dropFirst() : text {
            guard case 48...57 = byte else { return nil }
            let (tens, isTooLarge) = number.multipliedReportingOverflow(by: 10)
            let digit = Int64(byte - 48)
            // Below zero there is one number more.
            let (sum, isSumTooLarge) =
                isNegative ? tens.subtractingReportingOverflow(digit) : tens.addingReportingOverflow(digit)
            if isTooLarge || isSumTooLarge { return nil }
            number = sum
        }
        return number
    }

    package mutating func double() throws -> Double {
        let text = try numberText()
        guard let number = Double(String(decoding: text, as: UTF8.self)), number.isFinite else {
            throw malformed("a finite number")
        }
        return number
    }

    package mutating func boolean() throws -> Bool {
        if takeWord("true") { return true }
        if takeWord("false") { return false }
        throw malformed("true or false")
    }

    /// Whether the next value is null, which is then read.
    package mutating func null() throws -> Bool {
        guard try kind() == .null else { return false }
        guard takeWord("null") else { throw malformed("null") }
        return true
    }

    /// Reads any value and returns its text.
    package mutating func text() throws -> ArraySlice<UInt8> {
        skipSpace()
        let start = position
        try skip()
        return bytes[start..<position]
    }

    /// Reads any value.
    package mutating func skip() throws {
        switch try kind() {
        case .object: try members { reader, _ in try reader.skip() }
        case .array: try array { try $0.skip() }
        case .string: if try plainString() == nil { _ = try escapedString() }
        case .number: _ = try numberText()
        case .boolean: _ = try boolean()
        case .null: _ = try null()
        }
    }

    // MARK: Parts

    /// Reads a number as it is spelled.
    package mutating func numberText() throws -> ArraySlice<UInt8> {
        skipSpace()
        let start = position
        if peek == UInt8(ascii: "-") { position += 1 }
        if peek == UInt8(ascii: "0") { position += 1 } else { try takeDigits() }
        if peek == UInt8(ascii: ".") {
            position += 1
            try takeDigits()
        }
        if peek == UInt8(ascii: "e") || peek == UInt8(ascii: "E") {
            position += 1
            if peek == UInt8(ascii: "+") || peek == UInt8(ascii: "-") { position += 1 }
            try takeDigits()
        }
        return bytes[start..<position]
    }

    private mutating func takeDigits() throws {
        let start = position
        while let byte = peek, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        if position == start { throw malformed("a digit") }
    }

    private mutating func readEscape(into text: inout [UInt8]) throws {
        guard let letter = peek else { throw malformed("an escape") }
        position += 1
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(letter)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            let first = try codeUnit()
            var units = [first]
            // A character above U+FFFF is a pair of surrogates.
            if UTF16.isLeadSurrogate(first) {
                guard peek == UInt8(ascii: "\\") else { throw malformed("the second half of a pair of surrogates") }
                position += 1
                guard peek == UInt8(ascii: "u") else { throw malformed("the second half of a pair of surrogates") }
                position += 1
                units.append(try codeUnit())
            }
            guard let character = String(validating: units, as: UTF16.self) else { throw malformed("a character") }
            text += character.utf8
        default: throw malformed("an escape")
        }
    }

    private mutating func codeUnit() throws -> UInt16 {
        guard position + 4 <= bytes.endIndex else { throw malformed("four hexadecimal digits") }
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard bytes[position] < 0x80, let digit = Character(Unicode.Scalar(bytes[position])).hexDigitValue else {
                throw malformed("a hexadecimal digit")
            }
            unit = unit << 4 | UInt16(digit)
            position += 1
        }
        return unit
    }

    private var peek: UInt8? { position < bytes.endIndex ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        skipSpace()
        guard peek == byte else { return false }
        position += 1
        return true
    }

    private mutating func takeWord(_ word: StaticString) -> Bool {
        skipSpace()
        let count = word.utf8CodeUnitCount
        guard position + count <= bytes.endIndex else { return false }
        for index in 0..<count where bytes[position + index] != word.utf8Start[index] { return false }
        position += count
        return true
    }
}
