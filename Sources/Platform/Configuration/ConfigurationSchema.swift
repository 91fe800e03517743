/// Every key of the program, under the scopes that the executable chooses.
package struct ConfigurationSchema: Sendable {
    /// A component under its scope.
    struct Section: Sendable {
        let component: ObjectIdentifier
        let scope: String
        let about: String
        /// Its keys, as indices of `keys`, in the order of the component's settings.
        let keys: Range<Int>
    }

    /// A key under its scope.
    struct Key: Sendable {
        let name: String
        let declaration: SettingDeclaration
        var shortFlag: String?

        /// The key that names a file holding this secret.
        var fileName: String { name + "-file" }

        /// Every name under which the key can be set.
        var names: [String] { declaration.isSecret ? [name, fileName] : [name] }
    }

    /// The key that names the configuration file; it has a variable and a flag and cannot be set in a file.
    static let fileKey = "config"

    /// The program's name; in capitals it begins every environment variable.
    package let program: String

    private(set) var sections: [Section] = []
    private(set) var keys: [Key] = []
    private var variables: Set<String>
    private var flags: Set<String> = [Self.fileKey]

    /// Starts a schema without keys.
    package init(program: String) {
        precondition(SettingDeclaration.isName(program), "a program's name is a key's word")
        self.program = program
        variables = [Self.variable(for: Self.fileKey, program: program)]
    }

    /// Adds a component; with an empty scope its keys are at the top level.
    ///
    /// A component is added once, binds each property to one key, no two keys may have one name or one variable, and no
    /// key may be the scope of another; a breach traps.
    package mutating func add<Component: ConfigurationComponent>(
        _ component: Component.Type, as scope: String, _ about: String
    ) {
        let id = ObjectIdentifier(component)
        precondition(scope.isEmpty || SettingDeclaration.isName(scope), "\(scope): a scope is named like a key")
        precondition(!sections.contains { $0.component == id }, "\(component): added twice")
        let first = keys.count
        let settings = component.settings
        precondition(
            Set(settings.map { $0.property as PartialKeyPath<Component> }).count == settings.count,
            "\(component): two keys have one property")
        for setting in settings {
            let key = Key(name: Self.join(scope, setting.name), declaration: setting.declaration, shortFlag: nil)
            for name in key.names {
                precondition(
                    variables.insert(variable(for: name)).inserted, "\(name): two keys have one environment variable")
                precondition(flags.insert(name).inserted, "\(name): two keys have one name")
                precondition(
                    !keys.contains { $0.name.hasPrefix(name + ".") || name.hasPrefix($0.name + ".") },
                    "\(name): a key cannot be the scope of another")
            }
            keys.append(key)
        }
        sections.append(Section(component: id, scope: scope, about: about, keys: first..<keys.count))
    }

    /// Gives a key a second, short flag: `--data` for `--store.directory`.
    package mutating func addShortFlag(_ flag: String, for name: String) {
        guard let index = keys.firstIndex(where: { $0.name == name }) else {
            preconditionFailure("\(name): no such key")
        }
        precondition(!keys[index].declaration.isSecret, "\(name): a secret has no flag")
        precondition(keys[index].shortFlag == nil, "\(name): has a short flag already")
        precondition(flags.insert(flag).inserted, "\(flag): two keys have one flag")
        keys[index].shortFlag = flag
    }

    func section<Component>(of component: Component.Type) -> Section {
        guard let section = sections.first(where: { $0.component == ObjectIdentifier(component) }) else {
            preconditionFailure("\(component) is read and not in the schema")
        }
        return section
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
