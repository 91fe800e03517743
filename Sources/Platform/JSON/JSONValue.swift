import CSimdjson

/// The types of JSON values.
package enum JSONKind: Hashable, Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case boolean
    /// A number of any size.
    case number
    /// A string.
    case string
    /// An array.
    case array
    /// An object.
    case object
}

/// A value in a parsed document: its place on the tape, three words in size, free to copy.
package struct JSONValue: ~Escapable {
    // Invariant: points into the parser that this value's lifetime depends on.
    @usableFromInline let document: UnsafePointer<csimdjson_document>

    /// The tape word that starts this value.
    // Invariant: below the tape's count, and the start of an element.
    @usableFromInline let word: Int

    /// What stands at `word`: type in the top 8 bits, payload below.
    @usableFromInline let content: UInt64

    @_lifetime(immortal)
    @inlinable
    init(_ document: UnsafePointer<csimdjson_document>, word: Int) {
        self.document = document
        self.word = word
        self.content = document.pointee.tape[word]
    }

    /// The tape's letter for the type.
    @inlinable var letter: UInt8 { UInt8(truncatingIfNeeded: content >> 56) }

    /// Whether the value is an array or object.
    @inlinable var isContainer: Bool { letter == UInt8(ascii: "{") || letter == UInt8(ascii: "[") }

    /// The first word behind this value.
    @inlinable var end: Int {
        switch letter {
        case UInt8(ascii: "{"), UInt8(ascii: "["): Int(UInt32(truncatingIfNeeded: content))
        case UInt8(ascii: "l"), UInt8(ascii: "u"), UInt8(ascii: "d"): word + 2
        default: word + 1
        }
    }

    /// The value's type.
    @inlinable package var kind: JSONKind {
        switch letter {
        case UInt8(ascii: "\""): .string
        case UInt8(ascii: "{"): .object
        case UInt8(ascii: "["): .array
        case UInt8(ascii: "n"): .null
        case UInt8(ascii: "t"), UInt8(ascii: "f"): .boolean
        default: .number
        }
    }

    /// Whether the value is `null`.
    @inlinable package var isNull: Bool { letter == UInt8(ascii: "n") }

    /// The truth value; `nil` when it is not a boolean.
    @inlinable package var bool: Bool? {
        switch letter {
        case UInt8(ascii: "t"): true
        case UInt8(ascii: "f"): false
        default: nil
        }
    }

    /// The UTF-8 bytes of a string, escapes resolved; `nil` when it is not a string.
    ///
    /// NUL is a character as any other.
    @inlinable package var string: Span<UInt8>? {
        @_lifetime(copy self)
        get {
            guard letter == UInt8(ascii: "\"") else { return nil }
            return _overrideLifetime(stringBytes, copying: self)
        }
    }

    /// The bytes of what is known to be a string or name.
    @inlinable var stringBytes: Span<UInt8> {
        @_lifetime(copy self)
        get {
            // simdjson wrote at this offset: four bytes of length, then the bytes.
            let start = document.pointee.strings + Int(content & 0x00FF_FFFF_FFFF_FFFF)
            let count = UnsafeRawPointer(start).loadUnaligned(as: UInt32.self)
            return _overrideLifetime(Span(_unsafeStart: start + 4, count: Int(count)), copying: self)
        }
    }

    /// Values in an array, members in an object; 0 for everything else.
    package var count: Int {
        guard isContainer else { return 0 }
        let saturated = 0xFF_FFFF
        let count = Int(content >> 32) & saturated
        return count < saturated ? count : counted()
    }

    /// Counts one by one: the tape's count ends at 24 bits.
    private func counted() -> Int {
        var count = 0
        if var elements {
            while elements.next() != nil { count += 1 }
        } else if var members {
            while members.next() != nil { count += 1 }
        }
        return count
    }

    /// Where the value stands in the document's source, from its first byte to behind its last one.
    @inlinable package var sourceRange: Range<Int> {
        tokenStart(word)..<(isContainer ? tokenStart(end - 1) + 1 : scalarEnd)
    }

    /// The value as it is spelled in the source.
    @inlinable package var sourceBytes: Span<UInt8> {
        @_lifetime(copy self)
        get {
            let range = sourceRange
            // In bounds: every range lies within the source.
            let bytes = Span(_unsafeStart: document.pointee.source + range.lowerBound, count: range.count)
            return _overrideLifetime(bytes, copying: self)
        }
    }

    /// Source offset of the token that made a tape word.
    @inlinable func tokenStart(_ word: Int) -> Int {
        Int(document.pointee.tokens[Int(document.pointee.token_of_word[word])])
    }

    /// Only white space stands between a scalar and the next token, or the end of the source.
    @usableFromInline var scalarEnd: Int {
        let next = document.pointee.token_of_word[word] + 1
        var end =
            next < document.pointee.token_count
            ? Int(document.pointee.tokens[Int(next)]) : Int(document.pointee.source_count)
        // In bounds: the token itself is no white space, so that the walk ends behind its start.
        while document.pointee.source[end - 1].isSpace { end -= 1 }
        return end
    }
}
