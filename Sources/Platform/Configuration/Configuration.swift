import Commands
import Synchronization

/// The settings in force: resolved from every source, checked, and ready to be read by the components.
///
/// Precedence, ascending: default, configuration file, environment, flags.
package struct Configuration: Sendable {
    /// A setting in force.
    package struct Entry: Sendable, Hashable {
        /// The key in full.
        package let key: String

        /// The value as one would write it; `***` for a secret, `nil` where nothing is set.
        package let value: String?

        /// Where it comes from.
        package let origin: ConfigurationOrigin

        /// Whether the value is masked.
        package let isSecret: Bool
    }

    let schema: ConfigurationSchema
    private let values: [ResolvedSetting?]
    /// Those whose value is in a file that was not opened.
    private let unopened: Set<Int>
    /// Only names that components declare are looked up here.
    private let places: [String: Int]
    private let record = ReadRecord()

    /// Resolves and checks every setting.
    ///
    /// - Parameter scopes: those that will be read: their required keys must be set, their own rules are checked, and the
    ///   files of their secrets are opened; `nil` means all. What is said about other scopes is checked for its type all
    ///   the same, but what their secrets' files hold stays unknown, so that they need not be readable: reading such a
    ///   secret traps.
    /// - Throws: every problem at once.
    package static func load(
        _ schema: ConfigurationSchema, from sources: ConfigurationSources, for scopes: [String]? = nil
    ) throws(ConfigurationProblems) -> Configuration {
        try load(schema, from: sources) { _ in scopes }
    }

    /// The same, where a setting decides which scopes count: `choose` reads it, and where that throws none do.
    package static func load(
        _ schema: ConfigurationSchema, from sources: ConfigurationSources,
        choosing choose: (Configuration) throws(ConfigurationProblem) -> [String]?
    ) throws(ConfigurationProblems) -> Configuration {
        var resolver = ConfigurationResolver(schema, sources)
        resolver.collect()
        // What decides which scopes count is in no file of its own.
        var closed = resolver
        let known = closed.resolve { _ in false }
        let preliminary = Configuration(schema, closed, known)
        let scopes: [String]?
        do throws(ConfigurationProblem) {
            scopes = try choose(preliminary)
        } catch {
            // Its value is not allowed, which the resolver finds.
            scopes = []
        }
        let chosen = schema.scopes.filter { scopes?.contains($0.name) ?? true }
        let opened = Set(chosen.flatMap(\.settings))
        let values = resolver.resolve { opened.contains($0) }
        let configuration = Configuration(schema, resolver, values, opened)
        for scope in chosen {
            let missing = scope.settings.filter { configuration.values[$0] == nil }
            for place in missing where !resolver.isGiven(place) {
                let problem = configuration.missing(place)
                resolver.report(problem.key, problem.origin, problem.explanation)
            }
            guard missing.isEmpty else { continue }
            do throws(ConfigurationProblem) {
                try scope.check(ConfigurationReader(configuration, scope: scope.name))
            } catch {
                resolver.report(error.key, error.origin, error.explanation)
            }
        }
        guard resolver.problems.isEmpty else { throw ConfigurationProblems(problems: resolver.problems) }
        return configuration
    }

    private init(
        _ schema: ConfigurationSchema, _ resolver: ConfigurationResolver, _ values: [ResolvedSetting?],
        _ opened: Set<Int> = []
    ) {
        self.schema = schema
        self.values = values
        unopened = Set(schema.settings.indices.filter { resolver.isInFile($0) && !opened.contains($0) })
        places = Dictionary(uniqueKeysWithValues: schema.settings.enumerated().map { ($1.name, $0) })
    }

    /// Reads a component under the scope it was added with.
    package func read<Component: ConfigurationComponent>(
        _ component: Component.Type, from scope: String
    ) throws(ConfigurationProblem) -> Component {
        try component.init(from: ConfigurationReader(self, scope: scope))
    }

    /// What the components have read, in the order declared.
    package var inForce: [Entry] {
        record.places.sorted().compactMap { place in
            guard let value = values[place] else { return nil }
            let setting = schema.settings[place]
            let isAbsent = value.value == nil && setting.declaration.default == .none
            return Entry(
                key: setting.name, value: isAbsent ? nil : value.shown, origin: value.origin,
                isSecret: setting.declaration.isSecret)
        }
    }

    /// Keys of these scopes that no component has read: they are declared for nothing.
    ///
    /// Meant for tests.
    package func unread(in scopes: [String]? = nil) -> [String] {
        let read = record.places
        return schema.scopes.filter { scopes?.contains($0.name) ?? true }
            .flatMap(\.settings).filter { !read.contains($0) }.map { schema.settings[$0].name }
    }

    func value(of name: String) throws(ConfigurationProblem) -> ResolvedSetting {
        let place = place(of: name)
        record.insert(place)
        precondition(!unopened.contains(place), "\(name) is read, but its scope is none that was loaded")
        guard let value = values[place] else { throw missing(place) }
        return value
    }

    func origin(of name: String) -> ConfigurationOrigin? {
        values[place(of: name)]?.origin
    }

    private func place(of name: String) -> Int {
        guard let place = places[name] else {
            preconditionFailure("\(name) is read and not in the schema: its component's keys leave it out")
        }
        return place
    }

    private func missing(_ place: Int) -> ConfigurationProblem {
        let setting = schema.settings[place]
        let name = setting.declaration.isSecret ? setting.fileName : setting.name
        return ConfigurationProblem(
            key: setting.name, origin: nil,
            explanation: "is required; set it in the configuration file, as \(schema.variable(for: setting.name)) "
                + "or as --\(name); expected \(setting.declaration.expected)")
    }
}

/// Which settings have been read; shared by the copies of a configuration.
private final class ReadRecord: Sendable {
    private let state = Mutex<Set<Int>>([])

    var places: Set<Int> { state.withLock(\.self) }

    func insert(_ place: Int) {
        state.withLock { _ = $0.insert(place) }
    }
}

/// Reads the keys of one component by the names it declared, whatever scope it was given.
package struct ConfigurationReader: Sendable {
    private let configuration: Configuration
    private let scope: String

    init(_ configuration: Configuration, scope: String) {
        self.configuration = configuration
        self.scope = scope
    }

    /// The value in force.
    ///
    /// - Throws: where a required key is not set. A key that the component does not list in `keys` traps.
    package func read<Value>(_ key: ConfigurationKey<Value>) throws(ConfigurationProblem) -> Value {
        let resolved = try configuration.value(of: ConfigurationSchema.join(scope, key.declaration.name))
        if let value = resolved.value { return key.unbox(value) }
        guard case .value(let value) = key.fallback else {
            preconditionFailure("\(key.declaration.name): a required key has a default")
        }
        return value
    }

    /// A problem with a key's value that shows in view of others: "must be below …".
    package func problem(with key: any DeclaredConfigurationKey, _ explanation: String) -> ConfigurationProblem {
        let name = ConfigurationSchema.join(scope, key.declaration.name)
        return ConfigurationProblem(key: name, origin: configuration.origin(of: name), explanation: explanation)
    }
}
