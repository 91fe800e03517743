import CSimdjson

extension JSONValue {
    /// The number as it is spelled in the source; `nil` when it is not a number.
    package var numberText: Span<UInt8>? {
        @_lifetime(copy self)
        get {
            guard kind == .number else { return nil }
            return _overrideLifetime(sourceBytes, copying: self)
        }
    }

    /// The number, when its exact value is a whole one of 64 bits with sign, however it is spelled (`1.0`, `1e3`);
    /// else `nil`, as for other types.
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

    /// The number, when its exact value is a whole one of 64 bits without sign, however it is spelled; else `nil`, as
    /// for other types.
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

    /// The double nearest to the number; `nil` when that is infinite, and for other types.
    ///
    /// `-0` reads as 0.
    package var double: Double? {
        guard kind == .number else { return nil }
        if document.pointee.numbers_masked == 0 {
            switch letter {
            case UInt8(ascii: "l"): return Double(Int64(bitPattern: number))
            case UInt8(ascii: "u"): return Double(number)
            // The sum takes the sign from -0 and leaves all else.
            default: return Double(bitPattern: number) + 0
            }
        }
        let text = sourceBytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
        guard let double = Double(text), double.isFinite else { return nil }
        return double + 0
    }

    /// The second word of a number.
    private var number: UInt64 { document.pointee.tape[word + 1] }
}
