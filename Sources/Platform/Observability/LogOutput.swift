import Glibc

/// Where finished lines go.
package protocol LogSink: Sendable {
    /// Takes one line, its newline included; must neither block nor keep without limit.
    func write(_ line: [UInt8])
}

/// How lines look.
package enum LogFormat: String, Sendable, Hashable, CaseIterable {
    /// For people: time, level, label, message, key=value.
    case text

    /// One JSON object a line.
    case json
}

/// Puts lines into a format and hands them to a sink; loggers share it.
package struct LogOutput: Sendable {
    /// The wall clock: microseconds since 1970-01-01T00:00:00Z.
    package typealias WallClock = @Sendable () -> Int64

    private let format: LogFormat
    private let isColoured: Bool
    private let sink: any LogSink
    private let now: WallClock

    /// Makes an output; `isColoured` matters to `LogFormat.text` alone.
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

    /// The system's wall clock.
    @Sendable package static func systemTime() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
    }

    /// Whether lines to this file are read by a person on a terminal that shows colours.
    ///
    /// - Parameter environment: `NO_COLOR`, set to anything but nothing, and `TERM=dumb` turn colours off.
    package static func showsColours(descriptor: Int32, environment: [String: String]) -> Bool {
        isatty(descriptor) == 1 && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    }
}
