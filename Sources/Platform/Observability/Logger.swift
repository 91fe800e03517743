/// Writes structured log lines: a constant message, and variable data as metadata.
///
/// It is a value: a copy can have its own metadata and level. A call below the level costs one comparison; its message
/// and metadata are not evaluated.
///
///     var logger = Logger(label: "ordering", output: output, level: .info)
///     logger[.partition] = 3
///     logger.notice("Partition paused", [.offset: .integer(offset), .reason: "unknown rules version"])
package struct Logger: Sendable {
    /// The component that logs.
    package let label: String

    /// Lines below this level are not written.
    package var level: LogLevel

    /// Added to every line.
    package var metadata: LogMetadata

    private let output: LogOutput?

    package init(label: String, output: LogOutput, level: LogLevel = .info, metadata: LogMetadata = [:]) {
        self.label = label
        self.output = output
        self.level = level
        self.metadata = metadata
    }

    /// Writes nothing; for tests and tools.
    package static let disabled = Logger()

    private init() {
        label = "disabled"
        output = nil
        level = .critical
        metadata = [:]
    }

    /// Metadata that is added to every line; `nil` removes it.
    package subscript(key: LogKey) -> LogValue? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// A logger for another component, with additional metadata.
    package func labeled(_ label: String, _ metadata: LogMetadata = [:]) -> Logger {
        guard let output else { return self }
        return Logger(label: label, output: output, level: level, metadata: self.metadata.merging(metadata))
    }

    package func log(
        _ level: LogLevel, _ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:]
    ) {
        guard level >= self.level, let output else { return }
        output.write(level, label: label, message: message(), metadata: self.metadata.merging(metadata()))
    }

    package func trace(_ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:]) {
        log(.trace, message(), metadata())
    }

    package func debug(_ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:]) {
        log(.debug, message(), metadata())
    }

    package func info(_ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:]) {
        log(.info, message(), metadata())
    }

    package func notice(_ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:]) {
        log(.notice, message(), metadata())
    }

    package func warning(
        _ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:],
        error: (any Error)? = nil
    ) {
        log(.warning, message(), metadata().with(error))
    }

    package func error(
        _ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:],
        error: (any Error)? = nil
    ) {
        log(.error, message(), metadata().with(error))
    }

    package func critical(
        _ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:],
        error: (any Error)? = nil
    ) {
        log(.critical, message(), metadata().with(error))
    }
}

extension LogMetadata {
    fileprivate func with(_ error: (any Error)?) -> LogMetadata {
        guard let error else { return self }
        return merging([.error: .string(String(describing: error))])
    }
}
