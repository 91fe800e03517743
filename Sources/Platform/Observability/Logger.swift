/// Writes structured log lines: a message that never varies, and what varies as metadata.
///
/// A value: a copy may have metadata or a level of its own. Safe to use from any thread; a call below the level costs a
/// comparison, since message and metadata are not made.
///
///     var logger = Logger(label: "ordering", output: output, level: .info)
///     logger[.partition] = 3
///     logger.notice("Partition paused", [.offset: .integer(offset), .reason: "unknown rules version"])
package struct Logger: Sendable {
    /// The part of the program that speaks.
    package let label: String

    /// Lines below this level are not written.
    package var level: LogLevel

    /// What every line of this logger carries.
    package var metadata: LogMetadata

    private let output: LogOutput?

    /// Makes a logger.
    package init(label: String, output: LogOutput, level: LogLevel = .info, metadata: LogMetadata = [:]) {
        self.label = label
        self.output = output
        self.level = level
        self.metadata = metadata
    }

    /// A logger that writes nothing, for tests and tools.
    package static let disabled = Logger()

    private init() {
        label = "disabled"
        output = nil
        level = .critical
        metadata = [:]
    }

    /// A value that every line of this logger carries; `nil` removes it.
    package subscript(key: LogKey) -> LogValue? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// A logger for another part, with this one's output, level and metadata, and more metadata.
    package func labeled(_ label: String, _ metadata: LogMetadata = [:]) -> Logger {
        guard let output else { return self }
        return Logger(label: label, output: output, level: level, metadata: self.metadata.merging(metadata))
    }

    /// Writes a line unless its level is too low.
    package func log(
        _ level: LogLevel, _ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:]
    ) {
        guard level >= self.level, let output else { return }
        output.write(level, label: label, message: message(), metadata: self.metadata.merging(metadata()))
    }

    /// Writes a line at level `trace`.
    package func trace(_ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:]) {
        log(.trace, message(), metadata())
    }

    /// Writes a line at level `debug`.
    package func debug(_ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:]) {
        log(.debug, message(), metadata())
    }

    /// Writes a line at level `info`.
    package func info(_ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:]) {
        log(.info, message(), metadata())
    }

    /// Writes a line at level `notice`.
    package func notice(_ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:]) {
        log(.notice, message(), metadata())
    }

    /// Writes a line at level `warning`, with the error that caused it, if one did.
    package func warning(
        _ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:],
        error: (any Error)? = nil
    ) {
        log(.warning, message(), metadata().with(error))
    }

    /// Writes a line at level `error`, with the error that caused it, if one did.
    package func error(
        _ message: @autoclosure () -> String, _ metadata: @autoclosure () -> LogMetadata = [:],
        error: (any Error)? = nil
    ) {
        log(.error, message(), metadata().with(error))
    }

    /// Writes a line at level `critical`, with the error that caused it, if one did.
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
