import CSimdjson

extension JSONValue {
    /// The source text of a number; `nil` for other types.
    package var numberText: Span<UInt8>? {
        @_lifetime(copy self)
        get {
            guard kind == .number else { return nil }
            return _overrideLifetime(sourceBytes, copying: self)
        }
    }

    /// The exact value if it is a signed 64-bit integer, in any notation (`1.0`, `1e3`); otherwise `nil`.
    package var int64: Int64? {
        guard kind == .number else { return nil }
        if document.pointee.numbers_masked == 0 {
            switch letter {
            case UInt8(ascii: "l"): return Int64(bitPattern: number)
            case UInt8(ascii: "u"): return nil
            default: break
            }
        }
        guard let whole = JSONDecimal(sourceBytes).wholeNumber else { return nil }
        return whole.isNegative ? Int64(exactly: -Int128(whole.magnitude)) : Int64(exactly: whole.magnitude)
    }

    /// The exact value if it is an unsigned 64-bit integer, in any notation; otherwise `nil`.
    package var uint64: UInt64? {
        guard kind == .number else { return nil }
        if document.pointee.numbers_masked == 0 {
            switch letter {
            case UInt8(ascii: "l"): return UInt64(exactly: Int64(bitPattern: number))
            case UInt8(ascii: "u"): return number
            default: break
            }
        }
        guard let whole = JSONDecimal(sourceBytes).wholeNumber else { return nil }
        return whole.isNegative ? nil : whole.magnitude
    }

    /// The nearest double, with 0 for `-0`; `nil` if it is infinite, and for other types.
    package var double: Double? {
        guard kind == .number else { return nil }
        if document.pointee.numbers_masked == 0 {
            switch letter {
            case UInt8(ascii: "l"): return Double(Int64(bitPattern: number))
            case UInt8(ascii: "u"): return Double(number)
            // Adding 0 turns -0 into 0.
            default: return Double(bitPattern: number) + 0
            }
        }
        let text = sourceBytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
        guard let double = Double(text), double.isFinite else { return nil }
        return double + 0
    }

    /// The second tape word of a number.
    private var number: UInt64 { document.pointee.tape[word + 1] }
}
