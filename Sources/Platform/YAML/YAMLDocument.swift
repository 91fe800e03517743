/// Limits of a YAML document, which bound the cost of parsing.
package struct YAMLLimits: Sendable {
    /// The size of the text; 1 MiB is enough for thousands of columns.
    package var bytes: Int

    /// The nesting of collections, by which the parser recurses; settings and schemas need fewer than ten levels.
    package var depth: Int

    /// Both are above 0.
    package init(bytes: Int = 1 << 20, depth: Int = 64) {
        precondition(bytes > 0 && depth > 0, "limits must be above 0")
        self.bytes = bytes
        self.depth = depth
    }
}

/// A YAML document as a tree of nodes with their positions.
///
/// For configuration files. Deliberately unsupported: anchors, aliases, tags, keys that are not scalars, and several
/// documents. A repeated key is an error.
package struct YAMLDocument: Sendable {
    /// `nil` if the text has only white space and comments.
    package let root: YAMLNode?

    package init(_ bytes: [UInt8], limits: YAMLLimits = YAMLLimits()) throws(YAMLError) {
        guard bytes.count <= limits.bytes else {
            throw YAMLError(
                code: .tooLarge, position: YAMLPosition(line: 1, column: 1),
                message: "the text has \(bytes.count) bytes, at most \(limits.bytes) are allowed")
        }
        try Self.requireUTF8(bytes)
        var builder = YAMLTreeBuilder(parser: try YAMLParser(bytes), maximumDepth: limits.depth)
        root = try builder.document()
    }

    package init(_ text: String, limits: YAMLLimits = YAMLLimits()) throws(YAMLError) {
        try self.init(Array(text.utf8), limits: limits)
    }

    private static func requireUTF8(_ bytes: [UInt8]) throws(YAMLError) {
        do {
            _ = try UTF8Span(validating: bytes.span)
        } catch {
            throw YAMLError(
                code: .invalidCharacter, position: YAMLPosition(of: error.byteOffsets.lowerBound, in: bytes),
                message: "the bytes are not UTF-8")
        }
    }
}

/// Builds the tree from the parser's events.
private struct YAMLTreeBuilder: ~Copyable {
    var parser: YAMLParser
    let maximumDepth: Int

    init(parser: consuming YAMLParser, maximumDepth: Int) {
        self.parser = parser
        self.maximumDepth = maximumDepth
    }

    mutating func document() throws(YAMLError) -> YAMLNode? {
        var root: YAMLNode?
        while true {
            let event = try parser.next()
            switch event.kind {
            case .streamStart, .documentEnd:
                continue
            case .streamEnd:
                return root
            case .documentStart:
                if root != nil {
                    throw YAMLError(
                        code: .unsupported, position: event.position, message: "only one document is allowed in a file")
                }
                root = try node(try parser.next(), depth: 0)
            case .scalar, .sequenceStart, .mappingStart, .collectionEnd:
                preconditionFailure("libyaml reported a node outside a document")
            }
        }
    }

    private mutating func node(_ event: YAMLEvent, depth: Int) throws(YAMLError) -> YAMLNode {
        switch event.kind {
        case .scalar(let scalar):
            return YAMLNode(content: .scalar(scalar), position: event.position)
        case .sequenceStart:
            try checkDepth(depth, at: event.position)
            return YAMLNode(content: .sequence(try elements(depth: depth + 1)), position: event.position)
        case .mappingStart:
            try checkDepth(depth, at: event.position)
            return YAMLNode(content: .mapping(try mapping(depth: depth + 1)), position: event.position)
        case .streamStart, .streamEnd, .documentStart, .documentEnd, .collectionEnd:
            preconditionFailure("libyaml reported the end of something where a node begins")
        }
    }

    private mutating func elements(depth: Int) throws(YAMLError) -> [YAMLNode] {
        var elements: [YAMLNode] = []
        while true {
            let event = try parser.next()
            if case .collectionEnd = event.kind { return elements }
            elements.append(try node(event, depth: depth))
        }
    }

    private mutating func mapping(depth: Int) throws(YAMLError) -> YAMLMapping {
        var mapping = YAMLMapping()
        while true {
            let event = try parser.next()
            if case .collectionEnd = event.kind { return mapping }
            guard case .scalar(let scalar) = event.kind else {
                throw YAMLError(
                    code: .unsupported, position: event.position, message: "the key of a mapping must be a scalar")
            }
            let key = YAMLMapping.Key(text: scalar.text, position: event.position)
            if let first = mapping.entry(of: key.text) {
                throw YAMLError(
                    code: .duplicateKey, position: key.position,
                    message: "the key \"\(key.text)\" is repeated; its first use is at \(first.key.position)")
            }
            let value = try node(try parser.next(), depth: depth)
            mapping.append(YAMLMapping.Entry(key: key, value: value))
        }
    }

    private func checkDepth(_ depth: Int, at position: YAMLPosition) throws(YAMLError) {
        guard depth < maximumDepth else {
            throw YAMLError(
                code: .tooDeep, position: position, message: "collections nest deeper than \(maximumDepth) levels")
        }
    }
}
