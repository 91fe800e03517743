import YAML

/// Where a value comes from.
package indirect enum ConfigurationOrigin: Sendable, Hashable, CustomStringConvertible {
    case `default`
    case file(path: String, position: YAMLPosition)
    /// An environment variable.
    case variable(String)

    /// A flag, without its hyphens.
    case flag(String)
    /// The first line of a file that another key names.
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

package struct ConfigurationProblem: Error, Sendable, Hashable, CustomStringConvertible {
    /// The key in full, or the unknown name; `nil` for a problem of the whole file.
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

/// Every problem of a configuration, never empty.
package struct ConfigurationProblems: Error, Sendable, CustomStringConvertible {
    /// Unknown names and wrong values of the file, the environment and the flags come before missing keys and rules between
    /// keys.
    package let problems: [ConfigurationProblem]

    package var description: String {
        problems.map(\.description).joined(separator: "\n")
    }
}
