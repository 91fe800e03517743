import CSimdjson
// Modules that read JSON usually write it, too.
@_exported import JSONText

package enum JSONKind: Hashable, Sendable {
    case null
    case boolean
    case number
    case string
    case array
    case object
}

/// A value in a parsed document: a position on simdjson's tape, three words in size.
package struct JSONValue: ~Escapable {
    // Invariant: points into the parser that this value's lifetime depends on.
    @usableFromInline let document: UnsafePointer<csimdjson_document>

    /// The tape word that starts this value.
    // Invariant: below the tape's count, and the start of an element.
    @usableFromInline let word: Int

    /// The tape word: type in the top 8 bits, payload below.
    @usableFromInline let content: UInt64

    @_lifetime(immortal)
    @inlinable
    init(_ document: UnsafePointer<csimdjson_document>, word: Int) {
        self.document = document
        self.word = word
        self.content = document.pointee.tape[word]
    }

    /// The type on the tape.
    @inlinable var letter: UInt8 { UInt8(truncatingIfNeeded: content >> 56) }

    @inlinable var isContainer: Bool { letter == UInt8(ascii: "{") || letter == UInt8(ascii: "[") }

    /// The tape word after this value.
    @inlinable var end: Int {
        switch letter {
        case UInt8(ascii: "{"), UInt8(ascii: "["): Int(UInt32(truncatingIfNeeded: content))
        case UInt8(ascii: "l"), UInt8(ascii: "u"), UInt8(ascii: "d"): word + 2
        default: word + 1
        }
    }

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

    @inlinable package var isNull: Bool { letter == UInt8(ascii: "n") }

    /// `nil` for other types.
    @inlinable package var bool: Bool? {
        switch letter {
        case UInt8(ascii: "t"): true
        case UInt8(ascii: "f"): false
        default: nil
        }
    }

    /// The unescaped UTF-8 of a string, which may contain NUL; `nil` for other types.
    @inlinable package var string: Span<UInt8>? {
        @_lifetime(copy self)
        get {
            guard letter == UInt8(ascii: "\"") else { return nil }
            return _overrideLifetime(stringBytes, copying: self)
        }
    }

    /// The value must be a string or name.
    @inlinable var stringBytes: Span<UInt8> {
        @_lifetime(copy self)
        get {
            // At this offset: four bytes of length, then the bytes.
            let start = document.pointee.strings + Int(content & 0x00FF_FFFF_FFFF_FFFF)
            let count = UnsafeRawPointer(start).loadUnaligned(as: UInt32.self)
            return _overrideLifetime(Span(_unsafeStart: start + 4, count: Int(count)), copying: self)
        }
    }

    /// The number of values or members; 0 for other types.
    package var count: Int {
        guard isContainer else { return 0 }
        let saturated = 0xFF_FFFF
        let count = Int(content >> 32) & saturated
        return count < saturated ? count : counted()
    }

    /// The tape's count saturates at 24 bits.
    private func counted() -> Int {
        var count = 0
        if var elements {
            while elements.next() != nil { count += 1 }
        } else if var members {
            while members.next() != nil { count += 1 }
        }
        return count
    }

    /// The range of the value in the document's source.
    @inlinable package var sourceRange: Range<Int> {
        tokenStart(word)..<(isContainer ? tokenStart(end - 1) + 1 : scalarEnd)
    }

    @inlinable package var sourceBytes: Span<UInt8> {
        @_lifetime(copy self)
        get {
            let range = sourceRange
            // In bounds: every range lies within the source.
            let bytes = Span(_unsafeStart: document.pointee.source + range.lowerBound, count: range.count)
            return _overrideLifetime(bytes, copying: self)
        }
    }

    /// The source offset of the token of a tape word.
    @inlinable func tokenStart(_ word: Int) -> Int {
        Int(document.pointee.tokens[Int(document.pointee.token_of_word[word])])
    }

    /// Skips backward over the white space before the next token.
    @usableFromInline var scalarEnd: Int {
        let next = document.pointee.token_of_word[word] + 1
        var end =
            next < document.pointee.token_count
            ? Int(document.pointee.tokens[Int(next)]) : Int(document.pointee.source_count)
        // In bounds: the token itself is not white space.
        while document.pointee.source[end - 1].isSpace { end -= 1 }
        return end
    }
}
