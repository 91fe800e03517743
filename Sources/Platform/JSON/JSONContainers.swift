import CSimdjson

extension JSONValue {
    /// An iterator over the values of an array; `nil` for other types.
    @inlinable package var elements: JSONElements? {
        @_lifetime(copy self)
        get {
            guard letter == UInt8(ascii: "[") else { return nil }
            return _overrideLifetime(JSONElements(document, word: word + 1, end: end - 1), copying: self)
        }
    }

    /// An iterator over the members of an object; `nil` for other types.
    @inlinable package var members: JSONMembers? {
        @_lifetime(copy self)
        get {
            guard letter == UInt8(ascii: "{") else { return nil }
            return _overrideLifetime(JSONMembers(document, word: word + 1, end: end - 1), copying: self)
        }
    }

    /// The value of the first member with the name, by linear search; `nil` if there is none, and for other types.
    @_lifetime(copy self)
    @inlinable package func member(named name: StaticString) -> JSONValue? {
        guard var members else { return nil }
        while let member = members.next() {
            if member.isNamed(name) { return _overrideLifetime(member.value, copying: self) }
        }
        return nil
    }

    /// The first member that repeats the name of an earlier one; `nil` if there is none, and for other types.
    ///
    /// Names are compared as unescaped bytes.
    package var repeatedMember: JSONMember? {
        @_lifetime(copy self)
        get {
            guard let word = RepeatedName.find(in: self) else { return nil }
            return _overrideLifetime(JSONMember(document, word: word), copying: self)
        }
    }
}

/// Iterates over the values of an array; each step has constant cost.
package struct JSONElements: ~Escapable {
    @usableFromInline let document: UnsafePointer<csimdjson_document>
    /// The next value's word, or `end`.
    @usableFromInline var word: Int
    /// The closing bracket's word.
    @usableFromInline let end: Int

    @_lifetime(immortal)
    @inlinable
    init(_ document: UnsafePointer<csimdjson_document>, word: Int, end: Int) {
        self.document = document
        self.word = word
        self.end = end
    }

    @_lifetime(copy self)
    @inlinable package mutating func next() -> JSONValue? {
        guard word < end else { return nil }
        let value = JSONValue(document, word: word)
        word = value.end
        return _overrideLifetime(value, copying: self)
    }
}

/// Iterates over the members of an object in source order, including repeated names; each step has constant cost.
package struct JSONMembers: ~Escapable {
    @usableFromInline let document: UnsafePointer<csimdjson_document>
    /// The next name's word, or `end`.
    @usableFromInline var word: Int
    /// The closing brace's word.
    @usableFromInline let end: Int

    @_lifetime(immortal)
    @inlinable
    init(_ document: UnsafePointer<csimdjson_document>, word: Int, end: Int) {
        self.document = document
        self.word = word
        self.end = end
    }

    @_lifetime(copy self)
    @inlinable package mutating func next() -> JSONMember? {
        guard word < end else { return nil }
        let member = JSONMember(document, word: word)
        word = member.value.end
        return _overrideLifetime(member, copying: self)
    }
}

package struct JSONMember: ~Escapable {
    @usableFromInline let nameValue: JSONValue

    package let value: JSONValue

    @_lifetime(immortal)
    @inlinable
    init(_ document: UnsafePointer<csimdjson_document>, word: Int) {
        nameValue = JSONValue(document, word: word)
        value = JSONValue(document, word: word + 1)
    }

    /// Unescaped UTF-8.
    @inlinable package var name: Span<UInt8> {
        @_lifetime(copy self)
        get { _overrideLifetime(nameValue.stringBytes, copying: self) }
    }

    /// The name in the source, including its quotes.
    @inlinable package var nameRange: Range<Int> { nameValue.sourceRange }

    @inlinable package func isNamed(_ other: StaticString) -> Bool {
        name.hasBytes(of: other)
    }
}

extension Span where Element == UInt8 {
    @inlinable package func hasBytes(of literal: StaticString) -> Bool {
        precondition(literal.hasPointerRepresentation, "a literal of one scalar has no bytes")
        guard count == literal.utf8CodeUnitCount else { return false }
        // In bounds: both have the same count.
        for index in indices where self[unchecked: index] != literal.utf8Start[index] { return false }
        return true
    }

    @inlinable package func hasSameBytes(as other: Span<UInt8>) -> Bool {
        guard count == other.count else { return false }
        for index in indices where self[unchecked: index] != other[unchecked: index] { return false }
        return true
    }
}
