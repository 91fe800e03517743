/// A key that a component reads: declared once, with its type, its default and one line of documentation.
///
/// The name is the component's own (`max-batch-bytes`); the executable puts a scope before it
/// (`gateway.max-batch-bytes`, `WEIR_GATEWAY_MAX_BATCH_BYTES`, `--gateway.max-batch-bytes`).
///
///     static let maxBatchBytes = ConfigurationKey(
///         "max-batch-bytes", .byteSize(in: 1024...(64 << 20)), default: 4 << 20, "The largest request, decompressed.")
package struct ConfigurationKey<Value: Sendable>: Sendable, DeclaredConfigurationKey {
    /// What a key has where nothing is set.
    enum Fallback: Sendable {
        case value(Value)
        case required
    }

    /// The key without its type.
    package let declaration: ConfigurationDeclaration

    let fallback: Fallback
    let unbox: @Sendable (any Sendable) -> Value

    /// Declares a key with a default, which its type must allow.
    package init(_ name: String, _ type: ConfigurationType<Value>, default value: Value, _ documentation: String) {
        let text = type.render(value)
        precondition(type.isSecret == false, "\(name): a secret has no default")
        precondition(type.parse(.one(text)) != nil, "\(name): its type does not allow its default")
        declaration = ConfigurationDeclaration(name, type, .value(text), documentation)
        fallback = .value(value)
        unbox = Self.cast
    }

    /// Declares a key that must be set wherever its component is used.
    package init(required name: String, _ type: ConfigurationType<Value>, _ documentation: String) {
        declaration = ConfigurationDeclaration(name, type, .required, documentation)
        fallback = .required
        unbox = Self.cast
    }

    /// Declares a key that may be left out, giving `nil`.
    package init<Wrapped>(optional name: String, _ type: ConfigurationType<Wrapped>, _ documentation: String)
    where Value == Wrapped? {
        declaration = ConfigurationDeclaration(name, type, .none, documentation)
        fallback = .value(nil)
        unbox = { ConfigurationKey<Wrapped>.cast($0) }
    }

    @Sendable private static func cast(_ value: any Sendable) -> Value {
        guard let value = value as? Value else {
            preconditionFailure("a key was declared with another type than \(Value.self)")
        }
        return value
    }
}

/// A key of any type, as lists of keys hold them.
package protocol DeclaredConfigurationKey: Sendable {
    /// The key without its type.
    var declaration: ConfigurationDeclaration { get }
}

/// What is known of a key, whatever its type.
package struct ConfigurationDeclaration: Sendable {
    /// What a key has where nothing is set.
    package enum Default: Sendable, Hashable {
        /// A value, as one would write it.
        case value(String)
        /// Nothing: the component does without.
        case none
        /// It must be set.
        case required
    }

    /// The name without a scope: words in lower case with hyphens, groups of them joined by dots.
    package let name: String

    /// What stands for the value in help.
    package let placeholder: String

    /// What is allowed, to follow "expected".
    package let expected: String

    /// What applies where nothing is set.
    package let `default`: Default

    /// Whether the value is never shown.
    package let isSecret: Bool

    /// One line on what the key does.
    package let documentation: String

    let isBoolean: Bool
    /// Whether a text that is refused is not quoted.
    let hidesRefused: Bool
    /// The value, and the text that `weir config` shows for it.
    let parse: @Sendable (ConfigurationText) -> (value: any Sendable, shown: String)?

    init<Value>(_ name: String, _ type: ConfigurationType<Value>, _ default: Default, _ documentation: String) {
        precondition(Self.isName(name), "\(name): a key has words in lower case, joined by hyphens and dots")
        precondition(documentation.isOneLine && !documentation.isEmpty, "\(name): one line of documentation")
        self.name = name
        placeholder = type.placeholder
        expected = type.expected
        self.default = `default`
        isSecret = type.isSecret
        isBoolean = type.isBoolean
        hidesRefused = type.isSecret || type.hidesRefused
        self.documentation = documentation
        parse = { text in type.parse(text).map { ($0, type.render($0)) } }
    }

    /// Whether a name has groups of words such as `tls.key-file`: ASCII, so that its bytes say all.
    static func isName(_ name: String) -> Bool {
        name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { group in
            group.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false).allSatisfy { word in
                !word.isEmpty
                    && word.allSatisfy {
                        ($0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z"))
                            || ($0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9"))
                    }
            }
        }
    }
}
