/// A position in a YAML text.
package struct YAMLPosition: Sendable, Hashable, CustomStringConvertible {
    /// From 1.
    package let line: Int

    /// In characters (Unicode scalars), from 1.
    package let column: Int

    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    /// `line:column`.
    package var description: String { "\(line):\(column)" }
}

package struct YAMLNode: Sendable {
    package enum Content: Sendable {
        case scalar(YAMLScalar)
        case sequence([YAMLNode])
        case mapping(YAMLMapping)
    }

    package let content: Content

    /// Where it begins; for an empty value, where it would be.
    package let position: YAMLPosition

    package var scalar: YAMLScalar? {
        if case .scalar(let scalar) = content { scalar } else { nil }
    }

    package var sequence: [YAMLNode]? {
        if case .sequence(let elements) = content { elements } else { nil }
    }

    package var mapping: YAMLMapping? {
        if case .mapping(let mapping) = content { mapping } else { nil }
    }

    /// For error messages: "a sequence", "text", "nothing".
    package var kind: String {
        switch content {
        case .sequence: "a sequence"
        case .mapping: "a mapping"
        case .scalar(let scalar):
            switch scalar.tag {
            case .null: "nothing"
            case .boolean: "a boolean"
            case .integer: "an integer"
            case .float: "a number"
            case .string: "text"
            }
        }
    }
}

/// The entries of a mapping in source order; keys are distinct scalars.
package struct YAMLMapping: Sendable {
    package struct Key: Sendable {
        /// The text, whatever its type as a value.
        package let text: String

        package let position: YAMLPosition
    }

    package struct Entry: Sendable {
        package let key: Key
        package let value: YAMLNode
    }

    package private(set) var entries: [Entry] = []

    /// Indexes into `entries`; by bytes, because `String` compares by canonical equivalence.
    private var indexes: [[UInt8]: Int] = [:]

    package subscript(key: String) -> YAMLNode? {
        indexes[Array(key.utf8)].map { entries[$0].value }
    }

    func entry(of key: String) -> Entry? {
        indexes[Array(key.utf8)].map { entries[$0] }
    }

    /// The key must be new.
    mutating func append(_ entry: Entry) {
        indexes[Array(entry.key.text.utf8)] = entries.count
        entries.append(entry)
    }
}

package struct YAMLError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Code: String, Sendable, Hashable {
        case tooLarge
        /// Invalid UTF-8, or a character that YAML does not allow.
        case invalidCharacter
        case syntax
        case tooDeep
        case duplicateKey
        /// Anchors, aliases, tags, keys that are not scalars, and further documents.
        case unsupported
        case outOfMemory
    }

    package let code: Code

    package let position: YAMLPosition

    /// One sentence without a full stop.
    package let message: String

    /// `line:column: message`, to follow the file's name and a colon.
    package var description: String { "\(position): \(message)" }
}
