/// Why a YAML text was refused, and where.
package struct YAMLError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kinds of refusal.
    package enum Code: String, Sendable, Hashable {
        /// The text is larger than the limit.
        case tooLarge
        /// A byte sequence is not UTF-8, or a character may not stand in YAML.
        case invalidCharacter
        /// The text breaks YAML's grammar.
        case syntax
        /// Collections are nested deeper than the limit.
        case tooDeep
        /// A mapping has a key twice.
        case duplicateKey
        /// YAML that this reader leaves out on purpose: anchors, aliases, tags, keys that are no scalars, a second
        /// document.
        case unsupported
        /// Memory ran out.
        case outOfMemory
    }

    /// The kind.
    package let code: Code

    /// Where the fault is.
    package let position: YAMLPosition

    /// What is wrong, one sentence without a full stop.
    package let message: String

    /// `line:column: message`, to be put after the file's name and a colon.
    package var description: String { "\(position): \(message)" }
}
