import Glibc

/// The destination of formatted lines.
package protocol LogSink: Sendable {
    /// Writes one line, which ends with a newline; must not block, and must bound its memory.
    func write(_ line: [UInt8])
}

package enum LogFormat: String, Sendable, Hashable, CaseIterable {
    /// Time, level, label, message, key=value.
    case text

    /// One JSON object per line.
    case json
}

/// Formats lines and writes them to a sink; shared by loggers.
package struct LogOutput: Sendable {
    /// Microseconds since 1970-01-01T00:00:00Z.
    package typealias WallClock = @Sendable () -> Int64

    private let format: LogFormat
    private let isColoured: Bool
    private let sink: any LogSink
    private let now: WallClock

    /// - Parameter isColoured: for `LogFormat.text` only.
    package init(
        format: LogFormat, isColoured: Bool = false, to sink: any LogSink,
        now: @escaping WallClock = LogOutput.systemTime
    ) {
        self.format = format
        self.isColoured = isColoured
        self.sink = sink
        self.now = now
    }

    func write(_ level: LogLevel, label: String, message: String, metadata: LogMetadata) {
        let line = LogLine(time: now(), level: level, label: label, message: message, metadata: metadata)
        sink.write(line.bytes(format, isColoured: isColoured))
    }

    @Sendable package static func systemTime() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
    }

    /// Whether the descriptor is a terminal with colours.
    ///
    /// - Parameter environment: a non-empty `NO_COLOR`, or `TERM=dumb`, disables colours.
    package static func showsColours(descriptor: Int32, environment: [String: String]) -> Bool {
        isatty(descriptor) == 1 && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    }
}

/// From `trace` to `critical`.
package enum LogLevel: String, Sendable, Hashable, CaseIterable, Comparable {
    /// Single steps.
    case trace

    /// Details for debugging.
    case debug

    /// Normal events: started, assigned, stopped.
    case info

    /// Normal but significant events.
    case notice

    /// A problem that the program handles.
    case warning

    /// An operation failed.
    case error

    /// The process cannot continue, or data is at risk.
    case critical

    private var rank: Int {
        switch self {
        case .trace: 0
        case .debug: 1
        case .info: 2
        case .notice: 3
        case .warning: 4
        case .error: 5
        case .critical: 6
        }
    }

    package static func < (left: LogLevel, right: LogLevel) -> Bool { left.rank < right.rank }
}
