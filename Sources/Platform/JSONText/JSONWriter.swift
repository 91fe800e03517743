/// Writes JSON into bytes, with commas.
///
/// Strings have minimal escaping. The caller is responsible for names in objects and for closing brackets;
/// ``object(_:)`` and ``array(_:)`` close their own.
package struct JSONWriter: Sendable {
    @usableFromInline package private(set) var bytes: [UInt8]

    /// Whether a value precedes in the same array or object.
    @usableFromInline var needsComma = false

    package init(capacity: Int = 0) {
        bytes = []
        bytes.reserveCapacity(capacity)
    }

    /// Makes space for so many bytes more.
    package mutating func reserve(_ count: Int) { bytes.reserveCapacity(bytes.count + count) }

    /// Appends to `bytes`; the first value gets no comma.
    package init(appendingTo bytes: consuming [UInt8]) {
        self.bytes = bytes
    }

    /// Returns the written bytes and resets the writer, without its memory.
    package mutating func take() -> [UInt8] {
        needsComma = false
        return takePart()
    }

    /// Returns what was written since the last part of a document that is continued.
    package mutating func takePart() -> [UInt8] {
        var taken: [UInt8] = []
        swap(&taken, &bytes)
        return taken
    }

    /// Resets the writer and keeps its memory.
    package mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        needsComma = false
    }

    // MARK: Arrays and objects

    @inlinable package mutating func beginObject() { begin(UInt8(ascii: "{")) }

    @inlinable package mutating func endObject() { end(UInt8(ascii: "}")) }

    @inlinable package mutating func beginArray() { begin(UInt8(ascii: "[")) }

    @inlinable package mutating func endArray() { end(UInt8(ascii: "]")) }

    @inlinable package mutating func object<Failure>(
        _ body: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        beginObject()
        try body(&self)
        endObject()
    }

    @inlinable package mutating func array<Failure>(
        _ body: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        beginArray()
        try body(&self)
        endArray()
    }

    /// The next value is the member's value.
    ///
    /// - Parameter name: without characters that need an escape.
    package mutating func name(_ name: StaticString) {
        let count = name.utf8CodeUnitCount
        assert(name.needsNoEscape, "a name of the code has a quote, a backslash or a control character")
        bytes.append(addingCapacity: count + 4) { output in
            if needsComma { output.append(UInt8(ascii: ",")) }
            output.append(UInt8(ascii: "\""))
            // The literal's bytes live as long as the program.
            output.append(copying: Span(_unsafeStart: name.utf8Start, count: count))
            output.append(UInt8(ascii: "\""))
            output.append(UInt8(ascii: ":"))
        }
        needsComma = false
    }

    /// UTF-8; the next value is the member's value.
    package mutating func name(_ name: Span<UInt8>) {
        comma()
        bytes.appendJSONString(name)
        endName()
    }

    /// The next value is the member's value.
    // A literal is a StaticString.
    @_disfavoredOverload package mutating func name(_ name: String) {
        comma()
        append(escaping: name)
        endName()
    }

    @inlinable package mutating func member(_ name: StaticString, _ value: String) {
        self.name(name)
        self.value(value)
    }

    @inlinable package mutating func member(_ name: StaticString, _ value: StaticString) {
        self.name(name)
        self.value(value)
    }

    @inlinable package mutating func member(_ name: StaticString, _ value: some FixedWidthInteger) {
        self.name(name)
        self.value(value)
    }

    @inlinable package mutating func member(_ name: StaticString, _ value: Bool) {
        self.name(name)
        self.value(value)
    }

    // MARK: Values

    package mutating func null() { literal("null") }

    package mutating func value(_ bool: Bool) { literal(bool ? "true" : "false") }

    @inlinable @inline(__always) package mutating func value(_ number: some FixedWidthInteger) {
        comma()
        bytes.appendJSONNumber(number)
        needsComma = true
    }

    package mutating func value(_ number: Int64) {
        comma()
        bytes.appendJSONNumber(number)
        needsComma = true
    }

    /// In the form of ECMAScript and RFC 8785; traps for infinities and NaN.
    package mutating func value(_ number: Double) {
        comma()
        bytes.appendJSONNumber(number)
        needsComma = true
    }

    package mutating func value(_ string: String) {
        comma()
        append(escaping: string)
        needsComma = true
    }

    /// - Parameter string: without characters that need an escape.
    package mutating func value(_ string: StaticString) {
        assert(string.needsNoEscape, "a text of the code has a quote, a backslash or a control character")
        // The literal's bytes live as long as the program.
        unescaped { $0.append(Span(_unsafeStart: string.utf8Start, count: string.utf8CodeUnitCount)) }
    }

    /// The bytes must be UTF-8.
    package mutating func value(_ string: Span<UInt8>) {
        comma()
        bytes.appendJSONString(string)
        needsComma = true
    }

    /// Writes a string of ASCII in which nothing needs an escape.
    package mutating func unescaped(_ append: (inout [UInt8]) -> Void) {
        comma()
        bytes.append(UInt8(ascii: "\""))
        append(&bytes)
        bytes.append(UInt8(ascii: "\""))
        needsComma = true
    }

    /// Writes a string in base64 (RFC 4648, padded).
    package mutating func base64(_ data: Span<UInt8>) {
        comma()
        bytes.append(UInt8(ascii: "\""))
        Base64.encode(data, into: &bytes)
        bytes.append(UInt8(ascii: "\""))
        needsComma = true
    }

    /// Writes valid JSON unchanged: one value, or in an array several values with commas between them.
    package mutating func raw(_ json: Span<UInt8>) {
        comma()
        bytes.append(json)
        needsComma = true
    }

    @inlinable package mutating func raw(_ json: [UInt8]) { raw(json.span) }

    /// Writes the beginning of an object unchanged, up to the name of a member: the next value is the member's value.
    package mutating func rawBeginning(_ json: [UInt8]) {
        comma()
        bytes.append(json.span)
        needsComma = false
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

    @usableFromInline mutating func comma() {
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

    private mutating func append(escaping text: String) {
        bytes.appendJSONString(text.utf8.span)
    }
}

extension StaticString {
    fileprivate var needsNoEscape: Bool {
        withUTF8Buffer { $0.allSatisfy { $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") } }
    }
}
