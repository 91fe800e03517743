import Commands
import Configuration
import Observability

/// How the process logs.
struct LogConfiguration: ConfigurationComponent {
    enum Format: String, Sendable, CaseIterable {
        case text, json
    }

    /// The levels, lowest first.
    enum Level: String, Sendable, CaseIterable {
        case trace, debug, info, notice, warning, error, critical
    }

    private var formatName = Format.text
    private var levelName = Level.info

    static var settings: [Setting<Self>] {
        Setting("format", \.formatName, .choice(Format.self), "Lines for people, or one JSON object a line.")
        Setting("level", \.levelName, .choice(Level.self), "Lines below this level are not written.")
    }

    init() {}

    var format: LogFormat { formatName == .json ? .json : .text }

    var level: LogLevel {
        switch levelName {
        case .trace: .trace
        case .debug: .debug
        case .info: .info
        case .notice: .notice
        case .warning: .warning
        case .error: .error
        case .critical: .critical
        }
    }

    /// Runs a command that ends by itself, with a logger to standard error.
    func withLogger(_ body: (Logger) async throws -> ExitCode) async rethrows -> ExitCode {
        let sink = BoundedLogSink(format: format)
        defer { _ = sink.flush(within: .seconds(1)) }
        return try await body(Logger(label: "weir", output: LogOutput(format: format, to: sink), level: level))
    }
}
