import CYAML

/// An event of libyaml's parser and its start position.
struct YAMLEvent {
    enum Kind {
        case documentStart
        case documentEnd
        case scalar(YAMLScalar)
        case sequenceStart
        case mappingStart
        case collectionEnd
        case streamStart
        case streamEnd
    }

    let kind: Kind
    let position: YAMLPosition
}

/// libyaml's parser for one text, which must be UTF-8.
struct YAMLParser: ~Copyable {
    // Invariant: both are allocated in `init` and freed in `deinit`; libyaml keeps pointers into them.
    private let handle: UnsafeMutablePointer<yaml_parser_t>
    private let text: UnsafeMutableBufferPointer<UInt8>

    init(_ bytes: [UInt8]) throws(YAMLError) {
        let handle = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
        handle.initialize(to: yaml_parser_t())
        guard yaml_parser_initialize(handle) == 1 else {
            handle.deallocate()
            throw YAMLError(
                code: .outOfMemory, position: YAMLPosition(line: 1, column: 1), message: "no memory for the parser")
        }
        let text = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
        _ = text.initialize(fromContentsOf: bytes)
        yaml_parser_set_input_string(handle, text.baseAddress, text.count)
        // Not detected from a byte order mark: the text is known to be UTF-8.
        yaml_parser_set_encoding(handle, YAML_UTF8_ENCODING)
        self.handle = handle
        self.text = text
    }

    deinit {
        yaml_parser_delete(handle)
        handle.deallocate()
        text.deallocate()
    }

    /// Throws for anchors, aliases and tags.
    mutating func next() throws(YAMLError) -> YAMLEvent {
        var event = yaml_event_t()
        guard yaml_parser_parse(handle, &event) == 1 else { throw failure() }
        defer { yaml_event_delete(&event) }
        let position = YAMLPosition(event.start_mark)
        switch event.type {
        case YAML_STREAM_START_EVENT: return YAMLEvent(kind: .streamStart, position: position)
        case YAML_STREAM_END_EVENT: return YAMLEvent(kind: .streamEnd, position: position)
        case YAML_DOCUMENT_START_EVENT: return YAMLEvent(kind: .documentStart, position: position)
        case YAML_DOCUMENT_END_EVENT: return YAMLEvent(kind: .documentEnd, position: position)
        case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT:
            return YAMLEvent(kind: .collectionEnd, position: position)
        case YAML_SEQUENCE_START_EVENT:
            let start = event.data.sequence_start
            try refuse(anchor: start.anchor, tag: start.tag, at: position)
            return YAMLEvent(kind: .sequenceStart, position: position)
        case YAML_MAPPING_START_EVENT:
            let start = event.data.mapping_start
            try refuse(anchor: start.anchor, tag: start.tag, at: position)
            return YAMLEvent(kind: .mappingStart, position: position)
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            try refuse(anchor: scalar.anchor, tag: scalar.tag, at: position)
            // libyaml returns valid UTF-8 for valid UTF-8; the buffer belongs to the event, which is freed on return.
            let bytes = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
            let text = String(decoding: bytes, as: UTF8.self)
            return YAMLEvent(
                kind: .scalar(YAMLScalar(text: text, style: YAMLScalar.Style(scalar.style))), position: position)
        case YAML_ALIAS_EVENT:
            throw YAMLError(
                code: .unsupported, position: position, message: "aliases are not supported: write the value out")
        default:
            preconditionFailure("libyaml reported an undocumented event: \(event.type)")
        }
    }

    private func refuse(
        anchor: UnsafeMutablePointer<yaml_char_t>?, tag: UnsafeMutablePointer<yaml_char_t>?, at position: YAMLPosition
    ) throws(YAMLError) {
        if anchor != nil {
            throw YAMLError(
                code: .unsupported, position: position, message: "anchors are not supported: write the value out")
        }
        if tag != nil {
            throw YAMLError(
                code: .unsupported, position: position,
                message: "tags are not supported: quote the value if it is meant as text")
        }
    }

    /// The error of a failed call.
    private func failure() -> YAMLError {
        let parser = handle.pointee
        let problem = parser.problem.map { String(cString: $0) } ?? "the text is not YAML"
        switch parser.error {
        case YAML_MEMORY_ERROR:
            return YAMLError(
                code: .outOfMemory, position: YAMLPosition(parser.mark), message: "no memory for the text")
        case YAML_READER_ERROR:
            // libyaml reports only a byte offset here.
            return YAMLError(
                code: .invalidCharacter, position: YAMLPosition(of: parser.problem_offset, in: text), message: problem)
        default:
            let context = parser.context.map { String(cString: $0) + ": " } ?? ""
            return YAMLError(
                code: .syntax, position: YAMLPosition(parser.problem_mark), message: context + problem)
        }
    }
}

extension YAMLPosition {
    /// libyaml counts from 0.
    fileprivate init(_ mark: yaml_mark_t) {
        self.init(line: mark.line + 1, column: mark.column + 1)
    }

    /// The position of a byte; columns count characters, so continuation bytes are skipped.
    init(of offset: Int, in text: some Collection<UInt8>) {
        let before = text.prefix(offset)
        let newline = UInt8(ascii: "\n")
        let line = before.count { $0 == newline }
        let column = before.reversed().prefix { $0 != newline }.count { $0 & 0xC0 != 0x80 }
        self.init(line: line + 1, column: column + 1)
    }
}

extension YAMLScalar.Style {
    fileprivate init(_ style: yaml_scalar_style_t) {
        self =
            switch style {
            case YAML_SINGLE_QUOTED_SCALAR_STYLE: .singleQuoted
            case YAML_DOUBLE_QUOTED_SCALAR_STYLE: .doubleQuoted
            case YAML_LITERAL_SCALAR_STYLE: .literal
            case YAML_FOLDED_SCALAR_STYLE: .folded
            default: .plain
            }
    }
}
