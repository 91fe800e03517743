import YAML

/// Where a value comes from.
package indirect enum ConfigurationOrigin: Sendable, Hashable, CustomStringConvertible {
    /// The declaration.
    case `default`

    /// The configuration file.
    case file(path: String, position: YAMLPosition)

    /// An environment variable.
    case variable(String)

    /// A flag, without its hyphens.
    case flag(String)

    /// The first line of a file that something else names.
    case secretFile(path: String, namedBy: ConfigurationOrigin)

    /// The origin as messages show it: `weir.yaml:3:9`, `WEIR_GATEWAY_PORT`, `--gateway.port`.
    package var description: String {
        switch self {
        case .default: "default"
        case .file(let path, let position): "\(path):\(position)"
        case .variable(let name): name
        case .flag(let name): "--\(name)"
        case .secretFile(let path, let origin): "\(path) (named by \(origin))"
        }
    }
}

/// One thing that is wrong with the configuration.
package struct ConfigurationProblem: Error, Sendable, Hashable, CustomStringConvertible {
    /// The key concerned, in full, or what was written in place of one; `nil` where the whole file is meant.
    package let key: String?

    /// Where the value comes from; `nil` where there is none.
    package let origin: ConfigurationOrigin?

    /// What is wrong and what is allowed; never holds a secret.
    package let explanation: String

    /// `weir.yaml:3:9: gateway.port: "x" is not allowed; expected …`.
    package var description: String {
        [origin?.description, key, explanation].compactMap(\.self).joined(separator: ": ")
    }
}

/// Everything that is wrong with the configuration, never empty.
package struct ConfigurationProblems: Error, Sendable, CustomStringConvertible {
    /// The problems: the file's in its order, then the environment's, the flags', keys that are missing, and rules
    /// between keys.
    package let problems: [ConfigurationProblem]

    /// One problem a line.
    package var description: String {
        problems.map(\.description).joined(separator: "\n")
    }
}
