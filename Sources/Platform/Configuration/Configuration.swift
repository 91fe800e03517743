/// The settings in force: taken from every source, checked, and assigned to the components that use them.
///
/// Precedence, ascending: default, configuration file, environment, flags.
package struct Configuration<Settings> {
    /// A setting in force.
    package struct Entry: Sendable, Hashable {
        /// The key in full.
        package let key: String
        /// The value as one would write it; `***` for a secret, `nil` where nothing is set.
        package let value: String?
        package let origin: ConfigurationOrigin
        package let isSecret: Bool
    }

    /// What the components were read into.
    package let settings: Settings
    /// Every setting that was read, in the order declared.
    package let inForce: [Entry]
}

extension Configuration: Sendable where Settings: Sendable {}

extension ConfigurationSchema {
    /// Reads the settings that a command uses.
    ///
    /// The names and types of all values are checked. Required keys must be set, the rules between keys are checked and the
    /// files of secrets are opened only of the components that `body` reads.
    ///
    /// - Throws: every problem at once.
    package func load<Settings>(
        from sources: ConfigurationSources,
        _ body: (ConfigurationReader) throws(ConfigurationProblem) -> Settings
    ) throws(ConfigurationProblems) -> Configuration<Settings> {
        let reader = ConfigurationReader(self, sources)
        do throws(ConfigurationProblem) {
            let settings = try body(reader)
            let problems = reader.problems
            if problems.isEmpty { return Configuration(settings: settings, inForce: reader.inForce()) }
            throw problems[0]
        } catch {
            throw ConfigurationProblems(problems: reader.problems.contains(error) ? reader.problems : [error])
        }
    }
}

/// Reads components while settings are loaded, and collects the problems with their values.
package final class ConfigurationReader {
    private let schema: ConfigurationSchema
    private var resolver: ConfigurationResolver
    /// The keys that were read, as indices of the schema's.
    private(set) var keysRead: Set<Int> = []

    init(_ schema: ConfigurationSchema, _ sources: ConfigurationSources) {
        self.schema = schema
        resolver = ConfigurationResolver(schema, sources)
        resolver.collect()
    }

    var problems: [ConfigurationProblem] { resolver.problems }

    /// Reads a component, and checks its rules unless a value is missing or wrong.
    ///
    /// A component with a problem may have any values; loading fails then.
    package func read<Component: ConfigurationComponent>(_ type: Component.Type = Component.self) -> Component {
        var component = Component()
        let section = schema.section(of: type)
        // Every setting is looked at, so that all missing ones are reported.
        let isComplete = zip(section.keys, Component.settings).count { !assign($0, $1, to: &component) } == 0
        guard isComplete else { return component }
        do throws(ConfigurationProblem) {
            try component.validate(ValidationContext(section: section, schema: schema, resolver: resolver))
        } catch {
            resolver.report(error)
        }
        return component
    }

    /// Reads one setting of a component, without the component's rules.
    package func read<Component: ConfigurationComponent, Value>(_ property: KeyPath<Component, Value>) -> Value {
        var component = Component()
        let (index, setting) = schema.key(of: property)
        _ = assign(index, setting, to: &component)
        return component[keyPath: property]
    }

    /// Reads a setting that decides which others are read.
    ///
    /// - Throws: the problem with its value, which ends loading.
    package func choice<Component: ConfigurationComponent, Value>(
        _ property: KeyPath<Component, Value>
    ) throws(ConfigurationProblem) -> Value {
        let value = read(property)
        let key = schema.keys[schema.key(of: property).index].name
        if let problem = problems.first(where: { $0.key == key }) { throw problem }
        return value
    }

    /// Assigns the value in force; `false` where there is none.
    private func assign<Component>(_ index: Int, _ setting: Setting<Component>, to component: inout Component) -> Bool {
        keysRead.insert(index)
        if let resolved = resolver.value(of: index) {
            if let value = resolved.value { setting.assign(&component, value) }
            return true
        }
        if !resolver.isGiven(index) { resolver.report(missing(schema.keys[index])) }
        return false
    }

    private func missing(_ key: ConfigurationSchema.Key) -> ConfigurationProblem {
        let flag = key.declaration.isSecret ? key.fileName : key.name
        return ConfigurationProblem(
            key: key.name, origin: nil,
            explanation: "is required; set it in the configuration file, as \(schema.variable(for: key.name)) "
                + "or as --\(flag); expected \(key.declaration.expected)")
    }

    fileprivate func inForce<Settings>() -> [Configuration<Settings>.Entry] {
        keysRead.sorted().compactMap { index in
            guard let value = resolver.value(of: index) else { return nil }
            let key = schema.keys[index]
            let isAbsent = value.value == nil && key.declaration.default == .none
            return .init(
                key: key.name, value: isAbsent ? nil : value.shown, origin: value.origin,
                isSecret: key.declaration.isSecret)
        }
    }
}

/// What `validate` reports problems with.
package struct ValidationContext<Component: ConfigurationComponent> {
    let section: ConfigurationSchema.Section
    let schema: ConfigurationSchema
    let resolver: ConfigurationResolver

    /// A problem with a key's value that shows in view of others: "must be below …".
    package func problem(with property: PartialKeyPath<Component>, _ explanation: String) -> ConfigurationProblem {
        let index = schema.key(of: property).index
        return ConfigurationProblem(
            key: schema.keys[index].name, origin: resolver.values[index]?.origin, explanation: explanation)
    }

    /// Whether a key has a value from some source, and not its default.
    package func isGiven(_ property: PartialKeyPath<Component>) -> Bool {
        let origin = resolver.values[schema.key(of: property).index]?.origin
        return origin != nil && origin != .default
    }
}

extension ConfigurationSchema {
    /// The setting that is bound to a property.
    fileprivate func key<Component: ConfigurationComponent>(
        of property: PartialKeyPath<Component>
    ) -> (index: Int, setting: Setting<Component>) {
        for (index, setting) in zip(section(of: Component.self).keys, Component.settings)
        where setting.property == property { return (index, setting) }
        preconditionFailure("\(property) has no key")
    }
}
