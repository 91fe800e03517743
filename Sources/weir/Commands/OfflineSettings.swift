import ChangeLog
import Commands
import Configuration
import Control
import EmbeddedPipeline
import Observability
import Ordering
import Verification

/// The settings of `weir verify` and `weir replay`; the schema file is none of them, since the log has every version.
struct OfflineSettings: Sendable {
    let log: LogConfiguration
    let data: String
    let ordering: OrderingConfiguration
    var backend: BackendSettings

    init(_ reader: ConfigurationReader) throws(ConfigurationProblem) {
        self.init(reader, in: try reader.choice(\PipelineConfiguration.storage))
    }

    private init(_ reader: ConfigurationReader, in storage: PipelineConfiguration.Storage) {
        backend = BackendSettings(reader, in: storage)
        log = reader.read()
        data = reader.read(\PipelineConfiguration.data)
        ordering = reader.read()
    }

    /// The flags of such a command, whatever its storage.
    static let options = Settings.schema.options { reader in
        _ = reader.read(\PipelineConfiguration.storage)
        for storage in PipelineConfiguration.Storage.allCases { _ = OfflineSettings(reader, in: storage) }
    }
}

extension OfflineSettings {
    /// What a log is ordered again from.
    func source<Log: ChangeLog>(
        _ log: Log, _ control: ControlTopic, _ logger: Logger, _ bar: ProgressBar
    ) -> ReplaySource<Log> {
        ReplaySource(
            log: log, history: control.history, schemas: control.schemas,
            leavingOut: control.skipped, configuration: ordering, logger: logger
        ) { bar.advance(by: $0) }
    }
}

/// Shows how far a command is while a body runs.
func withProgress<Value: Sendable>(
    _ title: String, total: Int? = nil, _ body: (ProgressBar) async throws -> Value
) async throws -> Value {
    let bar = ProgressBar(title, total: total, unit: "records")
    defer { bar.finish() }
    return try await body(bar)
}

extension [Report] {
    /// What all reports together come to.
    enum Conclusion {
        case equal, different, unknown
    }

    /// Prints what was found.
    func write() -> Conclusion {
        var conclusion = Conclusion.equal
        for report in self {
            Output.write(report.partition.map { "partition \($0)" } ?? "all partitions")
            for line in report.lines {
                let subject = line.subject + String(repeating: " ", count: Swift.max(0, 9 - line.subject.count))
                switch line.finding {
                case .equal(let text): Output.write("  \(subject) equal: \(text)")
                case .different(let first, let count):
                    let more = count > 1 ? " (and \(count - 1) more)" : ""
                    Output.write("  \(subject) DIFFERENT: \(first)\(more)")
                    conclusion = .different
                case .unknown(let text):
                    Output.write("  \(subject) cannot say: \(text)")
                    if conclusion == .equal { conclusion = .unknown }
                }
            }
        }
        return conclusion
    }
}
