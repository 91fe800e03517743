import CSimdjson

extension JSONValue {
    /// The values of an array, to be taken one by one; `nil` when it is not an array.
    @inlinable package var elements: JSONElements? {
        @_lifetime(copy self)
        get {
            guard letter == UInt8(ascii: "[") else { return nil }
            return _overrideLifetime(JSONElements(document, word: word + 1, end: end - 1), copying: self)
        }
    }

    /// The members of an object, to be taken one by one; `nil` when it is not an object.
    @inlinable package var members: JSONMembers? {
        @_lifetime(copy self)
        get {
            guard letter == UInt8(ascii: "{") else { return nil }
            return _overrideLifetime(JSONMembers(document, word: word + 1, end: end - 1), copying: self)
        }
    }

    /// The value of an object's first member of that name; `nil` when there is none, or no object.
    ///
    /// Looks at one member after the other. ``repeatedMember`` tells whether a name comes twice.
    @_lifetime(copy self)
    @inlinable package func member(named name: StaticString) -> JSONValue? {
        guard var members else { return nil }
        while let member = members.next() {
            if member.isNamed(name) { return _overrideLifetime(member.value, copying: self) }
        }
        return nil
    }

    /// The first member whose name an earlier one has already; `nil` when there is none, or no object.
    ///
    /// Names are compared byte by byte with their escapes resolved.
    package var repeatedMember: JSONMember? {
        @_lifetime(copy self)
        get {
            guard let word = RepeatedName.find(in: self) else { return nil }
            return _overrideLifetime(JSONMember(document, word: word), copying: self)
        }
    }
}

/// The values of an array, in order.
///
/// Taking one costs the same whatever it holds.
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

    /// The next value; `nil` behind the last one.
    @_lifetime(copy self)
    @inlinable package mutating func next() -> JSONValue? {
        guard word < end else { return nil }
        let value = JSONValue(document, word: word)
        word = value.end
        return _overrideLifetime(value, copying: self)
    }
}

/// The members of an object, in the order sent, repeated names included.
///
/// Taking one costs the same whatever it holds.
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

    /// The next member; `nil` behind the last one.
    @_lifetime(copy self)
    @inlinable package mutating func next() -> JSONMember? {
        guard word < end else { return nil }
        let member = JSONMember(document, word: word)
        word = member.value.end
        return _overrideLifetime(member, copying: self)
    }
}

/// A name and its value.
package struct JSONMember: ~Escapable {
    /// The name, a string.
    @usableFromInline let nameValue: JSONValue

    /// The value.
    package let value: JSONValue

    @_lifetime(immortal)
    @inlinable
    init(_ document: UnsafePointer<csimdjson_document>, word: Int) {
        nameValue = JSONValue(document, word: word)
        value = JSONValue(document, word: word + 1)
    }

    /// The UTF-8 bytes of the name, escapes resolved.
    @inlinable package var name: Span<UInt8> {
        @_lifetime(copy self)
        get { _overrideLifetime(nameValue.stringBytes, copying: self) }
    }

    /// Where the name stands in the source, quotes included.
    @inlinable package var nameRange: Range<Int> { nameValue.sourceRange }

    /// Whether the name is exactly these bytes.
    @inlinable package func isNamed(_ other: StaticString) -> Bool {
        name.hasBytes(of: other)
    }
}

extension Span where Element == UInt8 {
    /// Whether these are the UTF-8 bytes of a literal, and nothing else.
    @inlinable package func hasBytes(of literal: StaticString) -> Bool {
        precondition(literal.hasPointerRepresentation, "a literal of one scalar has no bytes")
        guard count == literal.utf8CodeUnitCount else { return false }
        // In bounds: both have the same count.
        for index in indices where self[unchecked: index] != literal.utf8Start[index] { return false }
        return true
    }

    /// Whether both hold the same bytes.
    @inlinable package func hasSameBytes(as other: Span<UInt8>) -> Bool {
        guard count == other.count else { return false }
        for index in indices where self[unchecked: index] != other[unchecked: index] { return false }
        return true
    }
}
