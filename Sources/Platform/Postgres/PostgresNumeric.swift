/// `numeric` in Postgres's binary format: groups of four decimal digits, the weight of the first group, a sign, and the number
/// of digits behind the point.
package enum PostgresNumeric {
    private static let negative: UInt16 = 0x4000

    /// Appends the binary form of decimal digits with an optional `-` and point; `false` if the text is no such number.
    package static func append(_ text: Span<UInt8>, to bytes: inout [UInt8]) -> Bool {
        var index = 0
        let isNegative = !text.isEmpty && text[0] == UInt8(ascii: "-")
        if isNegative { index = 1 }
        let start = index
        while index < text.count, isDigit(text[index]) { index += 1 }
        let point = index
        var end = index
        if index < text.count {
            guard text[index] == UInt8(ascii: ".") else { return false }
            end = index + 1
            while end < text.count, isDigit(text[end]) { end += 1 }
            guard end == text.count, end > point + 1 else { return false }
        }
        guard point > start else { return false }
        let scale = max(end - point - 1, 0)
        let whole = point - start

        // Digit 0 is the first behind the point, -1 the last before it.
        func digit(_ place: Int) -> UInt16 {
            if place < -whole || place >= scale { return 0 }
            let offset = place < 0 ? point + place : point + 1 + place
            return UInt16(text[offset] - UInt8(ascii: "0"))
        }
        func group(_ number: Int) -> UInt16 {
            let place = number * 4
            return digit(place) * 1000 + digit(place + 1) * 100 + digit(place + 2) * 10 + digit(place + 3)
        }
        var first = -((whole + 3) / 4)
        var last = (scale + 3) / 4
        while first < last, group(first) == 0 { first += 1 }
        while last > first, group(last - 1) == 0 { last -= 1 }
        let isZero = first == last

        bytes.append(bigEndian: Int16(last - first))
        bytes.append(bigEndian: Int16(isZero ? 0 : -first - 1))
        bytes.append(bigEndian: isNegative && !isZero ? negative : 0)
        bytes.append(bigEndian: Int16(scale))
        for number in first..<last { bytes.append(bigEndian: group(number)) }
        return true
    }

    /// Appends the text of a binary form.
    ///
    /// - Throws: `PostgresError` if it is no finite number.
    package static func appendText(of binary: Span<UInt8>, to text: inout [UInt8]) throws(PostgresError) {
        func word(_ index: Int) -> UInt16 { UInt16(binary[index * 2]) << 8 | UInt16(binary[index * 2 + 1]) }
        guard binary.count >= 8, binary.count == 8 + Int(word(0)) * 2, word(2) == 0 || word(2) == negative else {
            throw PostgresError(message: "Postgres sent a numeric that is no finite number")
        }
        let count = Int(word(0))
        let weight = Int(Int16(bitPattern: word(1)))
        let scale = Int(word(3))
        func group(_ number: Int) -> UInt16 {
            let index = number + weight + 1
            return index >= 0 && index < count ? word(4 + index) : 0
        }
        if word(2) == negative { text.append(UInt8(ascii: "-")) }
        let start = text.count
        for number in -max(weight + 1, 0)..<0 { append(group(number), digits: 4, to: &text) }
        let zeros = text[start...].prefix { $0 == UInt8(ascii: "0") }.count
        text.removeSubrange(start..<start + zeros)
        if text.count == start { text.append(UInt8(ascii: "0")) }
        guard scale > 0 else { return }
        text.append(UInt8(ascii: "."))
        var rest = scale
        var number = 0
        while rest > 0 {
            append(group(number), digits: min(rest, 4), to: &text)
            rest -= 4
            number += 1
        }
    }

    private static func append(_ group: UInt16, digits: Int, to text: inout [UInt8]) {
        var power: UInt16 = 1000
        for _ in 0..<digits {
            text.append(UInt8(ascii: "0") + UInt8(group / power % 10))
            power /= 10
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }
}
