import Configuration
import Observability

/// How the process logs.
struct LogConfiguration: ConfigurationComponent {
    /// The forms of a line.
    enum Format: String, Sendable, CaseIterable {
        case text, json
    }

    /// The levels, lowest first.
    enum Level: String, Sendable, CaseIterable {
        case trace, debug, info, notice, warning, error, critical
    }

    static let format = ConfigurationKey(
        "format", .choice(Format.self), default: .text, "Lines for people, or one JSON object a line.")
    static let level = ConfigurationKey(
        "level", .choice(Level.self), default: .info, "Lines below this level are not written.")

    static let keys: [any DeclaredConfigurationKey] = [format, level]

    let format: LogFormat
    let level: LogLevel

    init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        format = try reader.read(Self.format) == .json ? .json : .text
        level =
            switch try reader.read(Self.level) {
            case .trace: .trace
            case .debug: .debug
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            case .error: .error
            case .critical: .critical
            }
    }
}
