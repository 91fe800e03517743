extension [UInt8] {
    /// Appends an integer.
    @inlinable @inline(__always) package mutating func appendJSONNumber(_ number: some FixedWidthInteger) {
        appendDecimal(UInt64(number.magnitude), isNegative: number < 0)
    }

    @usableFromInline mutating func appendDecimal(_ magnitude: UInt64, isNegative: Bool) {
        // A sign and 20 digits.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 21) { buffer in
            var start = buffer.count
            var rest = magnitude
            repeat {
                let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
                start -= 1
                buffer[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit)
                rest = quotient
            } while rest > 0
            if isNegative {
                start -= 1
                buffer[start] = UInt8(ascii: "-")
            }
            append(contentsOf: buffer[start...])
        }
    }

    /// Appends a number in the form of ECMAScript's `Number::toString` and RFC 8785: the shortest digits that
    /// round-trip, with an exponent from 10^21 on and below 10^-6; `-0` is `0`.
    ///
    /// Traps for infinities and NaN.
    package mutating func appendJSONNumber(_ number: Double) {
        precondition(number.isFinite, "JSON has neither infinities nor NaN")
        // Below 2^53, integers are exact.
        if number.magnitude < 9_007_199_254_740_992, let whole = Int64(exactly: number) {
            appendJSONNumber(whole)
            return
        }
        let shortest = ShortestDigits(number)
        if number < 0 { append(UInt8(ascii: "-")) }
        append(shortest)
    }

    /// Formats digits by ECMA-262, Number::toString: k digits, value 0.digits × 10^n.
    private mutating func append(_ shortest: ShortestDigits) {
        // At most 17.
        let k = shortest.digits.count
        let n = shortest.pointIndex
        let zero = UInt8(ascii: "0")
        switch n {
        case k...21:
            append(contentsOf: shortest.digits)
            append(contentsOf: repeatElement(zero, count: n - k))
        case 1...21:
            append(contentsOf: shortest.digits[..<n])
            append(UInt8(ascii: "."))
            append(contentsOf: shortest.digits[n...])
        case -5...0:
            append(contentsOf: "0.".utf8)
            append(contentsOf: repeatElement(zero, count: -n))
            append(contentsOf: shortest.digits)
        default:
            append(shortest.digits[0])
            if k > 1 {
                append(UInt8(ascii: "."))
                append(contentsOf: shortest.digits[1...])
            }
            append(UInt8(ascii: "e"))
            if n > 0 { append(UInt8(ascii: "+")) }
            appendJSONNumber(n - 1)
        }
    }
}

/// The shortest decimal digits that round-trip to the same double, and of those the nearest.
private struct ShortestDigits {
    /// Without leading and trailing zeros.
    let digits: [UInt8]

    /// The value is 0.digits × 10^pointIndex.
    let pointIndex: Int

    /// Parses Swift's `description`, which has the same digits in another format.
    init(_ number: Double) {
        var digits: [UInt8] = []
        digits.reserveCapacity(17)
        var exponent = 0
        var isExponentNegative = false
        var integerDigits: Int?
        var isInExponent = false
        for byte in number.magnitude.description.utf8 {
            switch byte {
            case UInt8(ascii: "."): integerDigits = digits.count
            case UInt8(ascii: "e"):
                integerDigits = integerDigits ?? digits.count
                isInExponent = true
            case UInt8(ascii: "-"): isExponentNegative = true
            case UInt8(ascii: "+"): continue
            default:
                if isInExponent {
                    exponent = exponent * 10 + Int(byte - UInt8(ascii: "0"))
                } else {
                    digits.append(byte)
                }
            }
        }
        var pointIndex = (integerDigits ?? digits.count) + (isExponentNegative ? -exponent : exponent)
        while digits.count > 1 && digits.last == UInt8(ascii: "0") { digits.removeLast() }
        let leading = digits.prefix { $0 == UInt8(ascii: "0") }.count
        digits.removeFirst(leading)
        pointIndex -= leading
        self.digits = digits
        self.pointIndex = pointIndex
    }
}
