/// A part of the program that has settings: what its keys are and how it reads them.
///
///     struct GatewayConfiguration: ConfigurationComponent {
///         static let address = ConfigurationKey("address", .address, default: …, "Where requests are accepted.")
///         static let keys: [any DeclaredConfigurationKey] = [address]
///
///         let address: NetworkAddress
///
///         init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
///             address = try reader.read(Self.address)
///         }
///     }
package protocol ConfigurationComponent: Sendable {
    /// Every key that `init(from:)` may read, in the order in which documentation lists them.
    static var keys: [any DeclaredConfigurationKey] { get }

    /// Reads the settings; rules between keys are checked here, with `ConfigurationReader.problem`.
    init(from reader: ConfigurationReader) throws(ConfigurationProblem)
}

/// Every key of the program, under the scopes that the executable chooses.
package struct ConfigurationSchema: Sendable {
    /// A component under its scope.
    struct Scope: Sendable {
        let name: String
        let about: String
        let settings: Range<Int>
        /// Reads the component, for the rules between its keys.
        let check: @Sendable (ConfigurationReader) throws(ConfigurationProblem) -> Void
    }

    /// A key under its scope.
    struct Setting: Sendable {
        let name: String
        let declaration: ConfigurationDeclaration
        var shortFlag: String?

        /// The key that names a file holding this secret.
        var fileName: String { name + "-file" }

        /// Every name under which the key can be set.
        var names: [String] { declaration.isSecret ? [name, fileName] : [name] }
    }

    /// The key that names the configuration file; it has a variable and a flag and stands in no file.
    static let fileKey = "config"

    /// The program's name; in capitals it begins every environment variable.
    package let program: String

    private(set) var scopes: [Scope] = []
    private(set) var settings: [Setting] = []
    private var variables: Set<String>
    private var flags: Set<String> = [Self.fileKey]

    /// Starts a schema without keys.
    package init(program: String) {
        precondition(ConfigurationDeclaration.isName(program), "a program's name is a key's word")
        self.program = program
        variables = [Self.variable(for: Self.fileKey, program: program)]
    }

    /// Adds a component; with an empty scope its keys stand at the top.
    ///
    /// No two keys may have one name or one variable, and no key may be the scope of another; a breach traps.
    package mutating func add<Component: ConfigurationComponent>(
        _ component: Component.Type, as scope: String, _ about: String
    ) {
        precondition(scope.isEmpty || ConfigurationDeclaration.isName(scope), "\(scope): a scope is named like a key")
        let first = settings.count
        for key in component.keys {
            let declaration = key.declaration
            let setting = Setting(
                name: Self.join(scope, declaration.name), declaration: declaration, shortFlag: nil)
            for name in setting.names {
                precondition(
                    variables.insert(Self.variable(for: name, program: program)).inserted,
                    "\(name): two keys have one environment variable")
                precondition(flags.insert(name).inserted, "\(name): two keys have one name")
                precondition(
                    !settings.contains { $0.name.hasPrefix(name + ".") || name.hasPrefix($0.name + ".") },
                    "\(name): a key cannot be the scope of another")
            }
            settings.append(setting)
        }
        scopes.append(
            Scope(name: scope, about: about, settings: first..<settings.count) {
                (reader) throws(ConfigurationProblem) in _ = try component.init(from: reader)
            })
    }

    /// Gives a key a second, short flag: `--data` for `--store.directory`.
    package mutating func addShortFlag(_ flag: String, for name: String) {
        guard let place = settings.firstIndex(where: { $0.name == name }) else {
            preconditionFailure("\(name): no such key")
        }
        precondition(!settings[place].declaration.isSecret, "\(name): a secret has no flag")
        precondition(settings[place].shortFlag == nil, "\(name): has a short flag already")
        precondition(flags.insert(flag).inserted, "\(flag): two keys have one flag")
        settings[place].shortFlag = flag
    }

    /// The variable of a key: `gateway.max-batch-bytes` is `WEIR_GATEWAY_MAX_BATCH_BYTES`.
    func variable(for name: String) -> String {
        Self.variable(for: name, program: program)
    }

    private static func variable(for name: String, program: String) -> String {
        let text = "\(program)_\(name)".uppercased()
        return String(text.map { $0 == "." || $0 == "-" ? "_" : $0 })
    }

    static func join(_ scope: String, _ name: String) -> String {
        scope.isEmpty ? name : "\(scope).\(name)"
    }
}
