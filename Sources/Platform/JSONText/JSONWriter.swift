/// Writes JSON into bytes, commas included.
///
/// Strings are escaped as little as the grammar allows: `"`, `\` and control characters. The caller sees to names in
/// objects and closing brackets; ``object(_:)`` and ``array(_:)`` close theirs.
package struct JSONWriter: Sendable {
    /// What was written so far.
    package private(set) var bytes: [UInt8]

    /// Whether a value stands before the place of writing in the same array or object.
    private var needsComma = false

    /// Starts with nothing written, and room for `capacity` bytes.
    package init(capacity: Int = 0) {
        bytes = []
        bytes.reserveCapacity(capacity)
    }

    /// Starts behind what `bytes` holds, as in an empty place: the first value gets no comma before it.
    package init(appendingTo bytes: consuming [UInt8]) {
        self.bytes = bytes
    }

    /// Takes what was written; the writer starts again without memory.
    package mutating func take() -> [UInt8] {
        var taken: [UInt8] = []
        swap(&taken, &bytes)
        needsComma = false
        return taken
    }

    /// Forgets what was written and keeps the memory.
    package mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        needsComma = false
    }

    // MARK: Arrays and objects

    /// Opens an object.
    @inlinable package mutating func beginObject() { begin(UInt8(ascii: "{")) }

    /// Closes an object.
    @inlinable package mutating func endObject() { end(UInt8(ascii: "}")) }

    /// Opens an array.
    @inlinable package mutating func beginArray() { begin(UInt8(ascii: "[")) }

    /// Closes an array.
    @inlinable package mutating func endArray() { end(UInt8(ascii: "]")) }

    /// Writes an object whose members `body` writes.
    @inlinable package mutating func object<Failure>(
        _ body: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        beginObject()
        try body(&self)
        endObject()
    }

    /// Writes an array whose values `body` writes.
    @inlinable package mutating func array<Failure>(
        _ body: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        beginArray()
        try body(&self)
        endArray()
    }

    /// Writes a member's name; its value is what is written next.
    package mutating func name(_ name: StaticString) {
        comma()
        append(escaping: name)
        endName()
    }

    /// Writes a member's name from its UTF-8 bytes; its value is what is written next.
    package mutating func name(_ name: Span<UInt8>) {
        comma()
        bytes.appendJSONString(name)
        endName()
    }

    /// Writes a member's name; its value is what is written next.
    package mutating func name(_ name: String) {
        comma()
        append(escaping: name)
        endName()
    }

    /// Writes a member with a string.
    @inlinable package mutating func member(_ name: StaticString, _ value: String) {
        self.name(name)
        self.value(value)
    }

    /// Writes a member with a string.
    @inlinable package mutating func member(_ name: StaticString, _ value: StaticString) {
        self.name(name)
        self.value(value)
    }

    /// Writes a member with a whole number.
    @inlinable package mutating func member(_ name: StaticString, _ value: some FixedWidthInteger) {
        self.name(name)
        self.value(value)
    }

    /// Writes a member with `true` or `false`.
    @inlinable package mutating func member(_ name: StaticString, _ value: Bool) {
        self.name(name)
        self.value(value)
    }

    // MARK: Values

    /// Writes `null`.
    package mutating func null() { literal("null") }

    /// Writes `true` or `false`.
    package mutating func value(_ bool: Bool) { literal(bool ? "true" : "false") }

    /// Writes a whole number in all its digits.
    package mutating func value(_ number: some FixedWidthInteger) {
        comma()
        bytes.appendJSONNumber(number)
        needsComma = true
    }

    /// Writes a number as ECMAScript and RFC 8785 spell it: the shortest digits that read back the same, no `-0`.
    ///
    /// JSON has no spelling for infinities and NaN: passing one is the caller's mistake.
    package mutating func value(_ number: Double) {
        comma()
        bytes.appendJSONNumber(number)
        needsComma = true
    }

    /// Writes a string.
    package mutating func value(_ string: String) {
        comma()
        append(escaping: string)
        needsComma = true
    }

    /// Writes a string.
    package mutating func value(_ string: StaticString) {
        comma()
        append(escaping: string)
        needsComma = true
    }

    /// Writes a string from its bytes, which must be UTF-8.
    package mutating func value(_ string: Span<UInt8>) {
        comma()
        bytes.appendJSONString(string)
        needsComma = true
    }

    /// Writes bytes as a string of base64 (RFC 4648, padded).
    package mutating func base64(_ data: Span<UInt8>) {
        comma()
        bytes.append(UInt8(ascii: "\""))
        Base64.encode(data, into: &bytes)
        bytes.append(UInt8(ascii: "\""))
        needsComma = true
    }

    /// Writes a value that is JSON already, as it is.
    ///
    /// Several values with commas between them do as well, in an array.
    package mutating func raw(_ json: Span<UInt8>) {
        comma()
        bytes.append(json)
        needsComma = true
    }

    /// Writes a value that is JSON already, as it is.
    package mutating func raw(_ json: [UInt8]) {
        comma()
        bytes.append(contentsOf: json)
        needsComma = true
    }

    // MARK: Parts

    @usableFromInline mutating func begin(_ bracket: UInt8) {
        comma()
        bytes.append(bracket)
        needsComma = false
    }

    @usableFromInline mutating func end(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func comma() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
    }

    private mutating func endName() {
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    private mutating func literal(_ word: StaticString) {
        comma()
        bytes.append(contentsOf: UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
        needsComma = true
    }

    private mutating func append(escaping text: StaticString) {
        // The literal's bytes live as long as the program.
        bytes.appendJSONString(Span(_unsafeStart: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    private mutating func append(escaping text: String) {
        bytes.appendJSONString(text.utf8.span)
    }
}
