import CSimdjson

/// A JSON parser (RFC 8259, strict) that keeps its buffers from one document to the next.
///
/// Documents are views into the parser and the bytes they were parsed from: the compiler lets neither change while a
/// view is in use. A parser keeps the memory of its largest document, about 20 bytes for each of its bytes, of which
/// the system counts only what was touched.
///
/// A parser kept in a class or an actor is best used through ``withDocument(_:padding:_:)``.
package struct JSONParser: ~Copyable, @unchecked Sendable {
    /// Arrays and objects inside each other that a document may have, empty ones included.
    package static var maximumDepth: Int { 1024 }

    /// Bytes that a document may have: 1 GiB, since places in tape and source are 32 bits.
    package static var maximumCount: Int { 1 << 30 }

    /// Bytes behind a document that spare ``parse(_:padding:)`` a copy.
    ///
    /// What they hold does not matter.
    package static let padding = csimdjson_padding()

    // Invariant: a live parser until deinit, reached through this value alone, which cannot be copied. Nothing in it is
    // tied to a thread, hence the unchecked conformance to Sendable.
    private let handle: OpaquePointer

    /// Makes a parser without buffers; they come with the first document.
    package init() {
        guard let handle = csimdjson_parser_create(Self.maximumDepth) else {
            preconditionFailure("no memory for a parser of a few hundred bytes")
        }
        self.handle = handle
    }

    deinit {
        csimdjson_parser_destroy(handle)
    }

    /// Parses a document.
    ///
    /// simdjson reads a few bytes beyond its input. When `bytes` ends with at least ``JSONParser/padding`` bytes that
    /// are not part of the document, they are parsed where they are, else they are copied into the parser first.
    ///
    /// Numbers that fit neither 64 bits nor a double are part of the grammar and therefore accepted: their text is
    /// there, their conversions are `nil`. Such documents are parsed twice. U+0000 is legal as `\u0000`.
    ///
    /// - Parameters:
    ///   - bytes: The document in UTF-8 without byte order mark, and `padding`.
    ///   - padding: How many bytes at the end of `bytes` are not part of the document.
    /// - Throws: What is wrong and where, when the bytes are not exactly one JSON value.
    @_lifetime(&self, copy bytes)
    package mutating func parse(_ bytes: Span<UInt8>, padding: Int = 0) throws(JSONError) -> JSONDocument {
        precondition(padding >= 0 && padding <= bytes.count, "the padding is part of the bytes")
        let count = bytes.count - padding
        guard count <= Self.maximumCount else { throw JSONError(.tooLarge, at: Self.maximumCount) }
        let source = bytes.extracting(first: count)
        // The pointers below are used within this call, but for `source` in the document, which the result's lifetime
        // covers: it depends on `bytes`.
        if count > 0 {
            let isParsed = try bytes.withUnsafeBufferPointer { (buffer) throws(JSONError) in
                try parse(buffer, count: count, isPadded: padding >= Self.padding)
            }
            if !isParsed { try parseMasked(source) }
        } else {
            throw JSONError(.empty, at: 0)
        }
        let document = JSONDocument(csimdjson_parser_document(handle))
        return _overrideLifetime(_overrideLifetime(document, copying: bytes), mutating: &self)
    }

    /// Parses a document and hands it to a closure; for parsers that are kept in classes, actors and the like.
    ///
    /// See ``parse(_:padding:)`` for parameters and errors.
    package mutating func withDocument<Result: ~Copyable>(
        _ bytes: Span<UInt8>, padding: Int = 0, _ body: (borrowing JSONDocument) throws -> Result
    ) throws -> Result {
        let document = try parse(bytes, padding: padding)
        return try body(document)
    }

    /// The common path: `false` when simdjson refuses, for whatever reason.
    private func parse(
        _ bytes: UnsafeBufferPointer<UInt8>, count: Int, isPadded: Bool
    ) throws(JSONError) -> Bool {
        guard let source = bytes.baseAddress else { return false }
        let outcome: csimdjson_outcome
        if isPadded {
            outcome = csimdjson_parser_parse(handle, source, source, count, 0)
        } else {
            guard let input = csimdjson_parser_input(handle, count) else { throw JSONError(.outOfMemory, at: 0) }
            input.update(from: source, count: count)
            outcome = csimdjson_parser_parse(handle, input, source, count, 0)
        }
        switch outcome {
        case .CSIMDJSON_PARSED: return true
        case .CSIMDJSON_REFUSED: return false
        case .CSIMDJSON_OUT_OF_MEMORY: throw JSONError(.outOfMemory, at: 0)
        }
    }

    /// The rare path: finds the error, or hides from simdjson the numbers that it could refuse.
    private func parseMasked(_ source: Span<UInt8>) throws(JSONError) {
        var check = JSONSyntaxCheck(maximumDepth: Self.maximumDepth)
        try check.run(source)
        guard let input = csimdjson_parser_input(handle, source.count) else { throw JSONError(.outOfMemory, at: 0) }
        let outcome = source.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return csimdjson_outcome.CSIMDJSON_REFUSED }
            input.update(from: base, count: buffer.count)
            for range in check.unusualNumbers {
                // In bounds: the check found the ranges in these bytes.
                input[range.lowerBound] = UInt8(ascii: "0")
                (input + range.lowerBound + 1).update(repeating: UInt8(ascii: " "), count: range.count - 1)
            }
            return csimdjson_parser_parse(handle, input, base, buffer.count, 1)
        }
        switch outcome {
        case .CSIMDJSON_PARSED: return
        case .CSIMDJSON_REFUSED: throw JSONError(.unsupported, at: 0)
        case .CSIMDJSON_OUT_OF_MEMORY: throw JSONError(.outOfMemory, at: 0)
        }
    }
}

/// A parsed document: a view that lives no longer than its parser's next use.
package struct JSONDocument: ~Escapable {
    // Invariant: points into the parser that this value's lifetime depends on.
    private let document: UnsafePointer<csimdjson_document>

    @_lifetime(immortal)
    init(_ document: UnsafePointer<csimdjson_document>) {
        self.document = document
    }

    /// The document's value.
    package var root: JSONValue {
        @_lifetime(copy self)
        get { _overrideLifetime(JSONValue(document, word: 1), copying: self) }
    }

    /// The bytes that were parsed, without padding; ``JSONValue/sourceRange`` counts from their start.
    package var source: Span<UInt8> {
        @_lifetime(copy self)
        get {
            let bytes = Span(_unsafeStart: document.pointee.source, count: Int(document.pointee.source_count))
            return _overrideLifetime(bytes, copying: self)
        }
    }
}
