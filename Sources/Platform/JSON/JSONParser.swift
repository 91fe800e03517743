import CSimdjson

/// A strict JSON parser (RFC 8259) that reuses its buffers.
///
/// Documents are views into the parser and the parsed bytes; the compiler prevents changes to either while a view is in
/// use. A parser keeps the memory of its largest document, about 20 bytes for each byte.
///
/// Use ``withDocument(_:padding:_:)`` for a parser in a class or an actor.
package struct JSONParser: ~Copyable, @unchecked Sendable {
    /// The limit of nested arrays and objects, including empty ones.
    package static var maximumDepth: Int { 1024 }

    /// 1 GiB, because positions in tape and source have 32 bits.
    package static var maximumCount: Int { 1 << 30 }

    /// Readable bytes after a document, of any content, with which ``parse(_:padding:)`` needs no copy.
    package static let padding = csimdjson_padding()

    // Invariant: valid until deinit and owned by this value. It is not bound to a thread, hence the unchecked
    // conformance to Sendable.
    private let handle: OpaquePointer

    /// The buffers are allocated with the first document.
    package init() {
        guard let handle = csimdjson_parser_create(Self.maximumDepth) else {
            preconditionFailure("no memory for a JSON parser of a few hundred bytes")
        }
        self.handle = handle
    }

    deinit {
        csimdjson_parser_destroy(handle)
    }

    /// Parses a document.
    ///
    /// simdjson reads some bytes beyond its input: with at least ``JSONParser/padding`` bytes of padding the document
    /// is parsed in place, otherwise it is copied first.
    ///
    /// Numbers that fit neither 64 bits nor a double are accepted, with `nil` conversions; such documents are parsed
    /// twice.
    ///
    /// - Parameters:
    ///   - bytes: the document in UTF-8 without byte order mark, followed by the padding.
    ///   - padding: the bytes at the end of `bytes` that are not part of the document.
    @_lifetime(&self, copy bytes)
    package mutating func parse(_ bytes: Span<UInt8>, padding: Int = 0) throws(JSONError) -> JSONDocument {
        precondition(padding >= 0 && padding <= bytes.count, "the padding must be within the bytes")
        let count = bytes.count - padding
        guard count <= Self.maximumCount else { throw JSONError(.tooLarge, at: Self.maximumCount) }
        let source = bytes.extracting(first: count)
        // The pointers are used during this call only, except `source` in the document, whose lifetime depends on
        // `bytes`.
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

    /// See ``parse(_:padding:)``.
    package mutating func withDocument<Result: ~Copyable>(
        _ bytes: Span<UInt8>, padding: Int = 0, _ body: (borrowing JSONDocument) throws -> Result
    ) throws -> Result {
        let document = try parse(bytes, padding: padding)
        return try body(document)
    }

    /// The fast path; `false` if simdjson rejects the document.
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

    /// The slow path: finds the error, or replaces the numbers that simdjson could reject.
    private func parseMasked(_ source: Span<UInt8>) throws(JSONError) {
        var check = JSONSyntaxCheck(maximumDepth: Self.maximumDepth)
        try check.run(source)
        guard let input = csimdjson_parser_input(handle, source.count) else { throw JSONError(.outOfMemory, at: 0) }
        let outcome = source.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return csimdjson_outcome.CSIMDJSON_REFUSED }
            input.update(from: base, count: buffer.count)
            for range in check.unusualNumbers {
                // In bounds: the ranges come from these bytes.
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

/// A parsed document: a view that is valid until the parser is used again.
package struct JSONDocument: ~Escapable {
    // Invariant: points into the parser that this value's lifetime depends on.
    private let document: UnsafePointer<csimdjson_document>

    @_lifetime(immortal)
    init(_ document: UnsafePointer<csimdjson_document>) {
        self.document = document
    }

    package var root: JSONValue {
        @_lifetime(copy self)
        get { _overrideLifetime(JSONValue(document, word: 1), copying: self) }
    }

    /// The parsed bytes, without padding.
    package var source: Span<UInt8> {
        @_lifetime(copy self)
        get {
            let bytes = Span(_unsafeStart: document.pointee.source, count: Int(document.pointee.source_count))
            return _overrideLifetime(bytes, copying: self)
        }
    }
}
