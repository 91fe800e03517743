import Foundation
import Observability
import Synchronization
import Testing

/// Keeps lines.
final class CollectingSink: LogSink {
    private let state = Mutex<[String]>([])

    var lines: [String] { state.withLock(\.self) }

    func write(_ line: [UInt8]) {
        let text = String(validating: line, as: UTF8.self) ?? "not UTF-8"
        state.withLock { $0.append(text) }
    }
}

/// What lines hold.
@Suite struct LoggerTests {
    private let sink = CollectingSink()

    // 2026-01-02T03:04:05.000678Z
    private static let time: Int64 = 1_767_323_045_000_678

    private func logger(_ format: LogFormat, level: LogLevel = .trace, isColoured: Bool = false) -> Logger {
        let output = LogOutput(format: format, isColoured: isColoured, to: sink) { Self.time }
        return Logger(label: "gateway", output: output, level: level)
    }

    @Test func writesTextLines() {
        logger(.text).info(
            "Listening",
            [
                .address: "127.0.0.1:80", .count: 3, .reason: "two words", .path: "",
                .duration: .duration(.milliseconds(1500)),
            ])
        #expect(
            sink.lines == [
                "2026-01-02T03:04:05.000678Z info     gateway: Listening address=127.0.0.1:80 count=3 "
                    + "reason=\"two words\" path=\"\" duration_s=1.5\n"
            ])
    }

    @Test func writesOneJSONObjectALine() throws {
        let nasty =
            "quote \" back \\ line\nreturn\rtab\t nul \u{0} esc \u{1B}[31m del \u{7F} c1 \u{9B} sep \u{2028} é 😀"
        logger(.json).warning(
            nasty,
            [
                .reason: .string(nasty), .offset: .integer(UInt64.max), .bytes: .integer(Int64.min),
                .limit: .number(.infinity), .count: 0.25, .code: true, .duration: .duration(.microseconds(-5)),
            ])
        let line = try #require(sink.lines.first)
        #expect(line.utf8.filter { $0 == UInt8(ascii: "\n") }.count == 1)
        #expect(line.unicodeScalars.dropLast().allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F ~= $0.value) })
        let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        #expect(object["time"] as? String == "2026-01-02T03:04:05.000678Z")
        #expect(object["level"] as? String == "warning")
        #expect(object["label"] as? String == "gateway")
        #expect(object["message"] as? String == nasty)
        #expect(object["reason"] as? String == nasty)
        #expect(object["offset"] as? String == "18446744073709551615")
        #expect(object["bytes"] as? Int64 == .min)
        #expect(object["limit"] as? String == "inf")
        #expect(object["count"] as? Double == 0.25)
        #expect(object["code"] as? Bool == true)
        #expect(object["duration_s"] as? Double == -5e-6)
    }

    @Test func escapesLineBreaksAndControlCharacters() {
        logger(.text).info("a\n2026-01-01 forged", [.reason: "x\u{1B}[2J", .error: "c=\"d\\\""])
        #expect(sink.lines.count == 1)
        #expect(
            sink.lines[0].hasSuffix(
                "gateway: a\\n2026-01-01 forged reason=\"x\\u001b[2J\" error=\"c=\\\"d\\\\\\\"\"\n"))
    }

    @Test(arguments: [
        (0 as Int64, "1970-01-01T00:00:00.000000Z"), (-1, "1969-12-31T23:59:59.999999Z"),
        (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"), (1_709_251_199_999_999, "2024-02-29T23:59:59.999999Z"),
        (4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00.000000Z"),
        (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
    ])
    func writesTimesInUTC(_ time: Int64, _ text: String) {
        let output = LogOutput(format: .text, to: sink) { time }
        Logger(label: "x", output: output).info("y")
        #expect(sink.lines == ["\(text) info     x: y\n"])
    }

    @Test func evaluatesNothingBelowTheLevel() {
        var made = 0
        func make() -> String {
            made += 1
            return "made"
        }
        let logger = logger(.text, level: .notice)
        logger.trace(make())
        logger.debug(make())
        logger.info(make(), [.reason: .string(make())])
        #expect(made == 0)
        logger.notice(make())
        logger.critical(make())
        #expect(made == 2)
        #expect(sink.lines.count == 2)
        Logger.disabled.critical(make())
        #expect(made == 2)
    }

    @Test func ordersLevels() {
        #expect(LogLevel.allCases == [.trace, .debug, .info, .notice, .warning, .error, .critical])
        #expect(LogLevel.allCases.sorted() == LogLevel.allCases)
    }

    @Test func carriesMetadataThatACallMayOverride() {
        var logger = logger(.text)
        logger[.stage] = "ordering"
        logger[.partition] = 3
        logger.labeled("store", [.topic: "changes"]).info("x", [.partition: 4, .count: 1])
        logger.info("y")
        logger[.stage] = nil
        logger.info("z")
        #expect(sink.lines[0].hasSuffix("store: x stage=ordering partition=4 topic=changes count=1\n"))
        #expect(sink.lines[1].hasSuffix("gateway: y stage=ordering partition=3\n"))
        #expect(sink.lines[2].hasSuffix("gateway: z partition=3\n"))
    }

    private enum Failure: Error { case broken(code: Int) }

    @Test func writesTheErrorThatCausedALine() {
        logger(.text).error("Failed", [.partition: 1], error: Failure.broken(code: 7))
        #expect(sink.lines[0].hasSuffix("Failed partition=1 error=\"broken(code: 7)\"\n"))
    }

    @Test func cutsLongTextsAtACharacter() {
        logger(.text).info(String(repeating: "é", count: 5000))
        let message = sink.lines[0].drop { $0 != "é" }
        #expect(message.utf8.count == 8192 + "…\n".utf8.count)
        #expect(message.hasSuffix("é…\n"))
    }

    @Test func coloursLinesOnlyForATerminal() {
        logger(.text, isColoured: true).error("x", [.count: 1])
        #expect(sink.lines[0].contains("\u{1B}[31merror\u{1B}[0m    gateway: x \u{1B}[2mcount=\u{1B}[0m1\n"))
        logger(.json, isColoured: true).error("x")
        #expect(!sink.lines[1].contains("\u{1B}"))
        #expect(!LogOutput.showsColours(descriptor: -1, environment: [:]))
    }

    @Test func disablesColoursByEnvironment() throws {
        let terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        try #require(terminal >= 0)
        defer { close(terminal) }
        #expect(LogOutput.showsColours(descriptor: terminal, environment: ["NO_COLOR": ""]))
        #expect(!LogOutput.showsColours(descriptor: terminal, environment: ["NO_COLOR": "1"]))
        #expect(!LogOutput.showsColours(descriptor: terminal, environment: ["TERM": "dumb"]))
    }
}
