/// A part of the program that has settings: plain stored properties with defaults, each bound to a key.
///
///     struct GatewayConfiguration: ConfigurationComponent {
///         var address = NetworkAddress("127.0.0.1:7777")!
///         var certificate: String?
///
///         init() {}
///
///         static var settings: [Setting<Self>] {
///             Setting("address", \.address, .address, "Where requests are accepted.")
///             Setting(optional: "tls.certificate", \.certificate, .path, "PEM file with the certificate.")
///         }
///     }
package protocol ConfigurationComponent: Sendable {
    /// Makes the defaults.
    init()

    /// Every key, in the order in which documentation lists them.
    @SettingsBuilder<Self> static var settings: [Setting<Self>] { get }

    /// Checks the rules between keys once all values are assigned, and derives what follows from them.
    mutating func validate(_ context: ValidationContext<Self>) throws(ConfigurationProblem)
}

extension ConfigurationComponent {
    package func validate(_ context: ValidationContext<Self>) throws(ConfigurationProblem) {}

    /// A copy in which one property differs: `OrderingConfiguration().with(\.stepBytes, 1024)`.
    package func with<Value>(_ property: WritableKeyPath<Self, Value>, _ value: Value) -> Self {
        var copy = self
        copy[keyPath: property] = value
        return copy
    }
}

/// A key bound to the property that holds its value.
///
/// The name is the component's own (`max-batch-bytes`); the executable puts a scope before it
/// (`gateway.max-batch-bytes`, `WEIR_GATEWAY_MAX_BATCH_BYTES`, `--gateway.max-batch-bytes`).
package struct Setting<Component: ConfigurationComponent>: Sendable {
    let declaration: SettingDeclaration
    let property: any PartialKeyPath<Component> & Sendable
    /// Assigns a value that the declaration's type has parsed.
    let assign: @Sendable (inout Component, any Sendable) -> Void

    package var name: String { declaration.name }

    /// A key whose default is the value of the property in `Component()`, which its type must allow.
    package init<Value>(
        _ name: String, _ property: any WritableKeyPath<Component, Value> & Sendable, _ type: ConfigurationType<Value>,
        _ documentation: String
    ) {
        let text = type.render(Component()[keyPath: property])
        precondition(!type.isSecret, "\(name): a secret has no default")
        precondition(type.parse(.one(text)) != nil, "\(name): its type does not allow its default")
        self.init(SettingDeclaration(name, type, .value(text), documentation), property) { (value: Value) in value }
    }

    /// A key that must be set wherever its component is used; the property's own value is never used.
    package init<Value>(
        required name: String, _ property: any WritableKeyPath<Component, Value> & Sendable,
        _ type: ConfigurationType<Value>, _ documentation: String
    ) {
        self.init(SettingDeclaration(name, type, .required, documentation), property) { (value: Value) in value }
    }

    /// A key that may be left out, which gives `nil`.
    package init<Wrapped>(
        optional name: String, _ property: any WritableKeyPath<Component, Wrapped?> & Sendable,
        _ type: ConfigurationType<Wrapped>, _ documentation: String
    ) {
        self.init(SettingDeclaration(name, type, .none, documentation), property) { (value: Wrapped) in value }
    }

    private init<Parsed, Value>(
        _ declaration: SettingDeclaration, _ property: any WritableKeyPath<Component, Value> & Sendable,
        _ convert: @escaping @Sendable (Parsed) -> Value
    ) {
        self.declaration = declaration
        self.property = property
        assign = { component, value in
            guard let value = value as? Parsed else {
                preconditionFailure("\(declaration.name): the value is not of the type \(Parsed.self)")
            }
            component[keyPath: property] = convert(value)
        }
    }
}

/// Collects the settings of a component; each is type-checked by itself.
@resultBuilder package enum SettingsBuilder<Component: ConfigurationComponent> {
    package static func buildExpression(_ setting: Setting<Component>) -> [Setting<Component>] { [setting] }

    package static func buildExpression(_ settings: [Setting<Component>]) -> [Setting<Component>] { settings }

    package static func buildBlock(_ settings: [Setting<Component>]...) -> [Setting<Component>] {
        settings.flatMap(\.self)
    }
}

/// What is known of a key, whatever its type.
struct SettingDeclaration: Sendable {
    /// What a key has where nothing is set.
    enum Default: Sendable, Hashable {
        /// A value, as one would write it.
        case value(String)
        /// Nothing: the component works without.
        case none
        case required
    }

    /// The name without a scope: words in lower case with hyphens, groups of them joined by dots.
    let name: String
    /// The placeholder of the value in help.
    let placeholder: String
    /// What is allowed, to follow "expected".
    let expected: String
    let `default`: Default
    let isSecret: Bool
    /// One line on what the key does.
    let documentation: String
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
