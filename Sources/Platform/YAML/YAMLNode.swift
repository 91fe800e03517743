/// A place in a YAML text.
package struct YAMLPosition: Sendable, Hashable, CustomStringConvertible {
    /// The line, from 1.
    package let line: Int

    /// The column in characters (Unicode scalars), from 1.
    package let column: Int

    /// Makes a place; both numbers count from 1.
    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    /// `line:column`, as compilers write it.
    package var description: String { "\(line):\(column)" }
}

/// A node of a YAML document: a scalar, a sequence or a mapping, and where it begins.
package struct YAMLNode: Sendable {
    /// What a node is.
    package enum Content: Sendable {
        case scalar(YAMLScalar)
        case sequence([YAMLNode])
        case mapping(YAMLMapping)
    }

    /// What this node is.
    package let content: Content

    /// Where it begins; for a value left empty, where it would stand.
    package let position: YAMLPosition

    /// The scalar, or `nil` where this is a collection.
    package var scalar: YAMLScalar? {
        if case .scalar(let scalar) = content { scalar } else { nil }
    }

    /// The elements, or `nil` where this is no sequence.
    package var sequence: [YAMLNode]? {
        if case .sequence(let elements) = content { elements } else { nil }
    }

    /// The mapping, or `nil` where this is none.
    package var mapping: YAMLMapping? {
        if case .mapping(let mapping) = content { mapping } else { nil }
    }

    /// What this node is, in the words of an error message: "a sequence", "text", "nothing".
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

/// A mapping's entries in the order written; keys are scalars and differ in their bytes.
package struct YAMLMapping: Sendable {
    /// A key of a mapping.
    package struct Key: Sendable {
        /// The key as text, whatever its type would be as a value.
        package let text: String

        /// Where the key begins.
        package let position: YAMLPosition
    }

    /// A key and its value.
    package struct Entry: Sendable {
        /// The key.
        package let key: Key

        /// The value.
        package let value: YAMLNode
    }

    /// Every entry, in the order written.
    package private(set) var entries: [Entry] = []

    /// Where each key stands in `entries`; by bytes, since `String` takes canonically equivalent keys for one.
    private var places: [[UInt8]: Int] = [:]

    /// The value of a key, compared byte by byte.
    package subscript(key: String) -> YAMLNode? {
        places[Array(key.utf8)].map { entries[$0].value }
    }

    /// The entry that has this key already, if there is one.
    func entry(of key: String) -> Entry? {
        places[Array(key.utf8)].map { entries[$0] }
    }

    /// Adds an entry whose key is known to be new.
    mutating func append(_ entry: Entry) {
        places[Array(entry.key.text.utf8)] = entries.count
        entries.append(entry)
    }
}
