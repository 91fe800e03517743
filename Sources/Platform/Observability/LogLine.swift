/// A log line before it is formatted.
struct LogLine {
    /// The longest message or value in bytes; longer ones are cut, so that no line fills the queue.
    static let longestText = 8 << 10

    /// Microseconds since 1970.
    let time: Int64
    let level: LogLevel
    let label: String
    let message: String
    let metadata: LogMetadata

    func bytes(_ format: LogFormat, isColoured: Bool) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(256)
        switch format {
        case .text: appendText(to: &line, isColoured: isColoured)
        case .json: appendJSON(to: &line)
        }
        line.append(UInt8(ascii: "\n"))
        return line
    }

    private func appendText(to line: inout [UInt8], isColoured: Bool) {
        line.appendTime(time)
        line.append(UInt8(ascii: " "))
        if isColoured { line += level.colour.utf8 }
        line += level.rawValue.utf8
        if isColoured { line += "\u{1B}[0m".utf8 }
        // The longest level has eight letters; one space follows it.
        line += repeatElement(UInt8(ascii: " "), count: 9 - level.rawValue.utf8.count)
        line.appendEscaped(label, quoted: false)
        line += ": ".utf8
        line.appendEscaped(message, quoted: false)
        for entry in metadata.entries {
            line.append(UInt8(ascii: " "))
            if isColoured { line += "\u{1B}[2m".utf8 }
            line += entry.key.name.utf8
            line.append(UInt8(ascii: "="))
            if isColoured { line += "\u{1B}[0m".utf8 }
            if case .string(let text) = entry.value {
                line.appendEscaped(text, quoted: text.needsQuotes)
            } else {
                line.appendNumber(entry.value)
            }
        }
    }

    private func appendJSON(to line: inout [UInt8]) {
        line += "{\"time\":\"".utf8
        line.appendTime(time)
        line += "\",\"level\":\"".utf8
        line += level.rawValue.utf8
        line += "\",\"label\":".utf8
        line.appendEscaped(label, quoted: true)
        line += ",\"message\":".utf8
        line.appendEscaped(message, quoted: true)
        for entry in metadata.entries {
            line += ",\"".utf8
            line += entry.key.name.utf8
            line += "\":".utf8
            if case .string(let text) = entry.value {
                line.appendEscaped(text, quoted: true)
            } else {
                line.appendNumber(entry.value)
            }
        }
        line.append(UInt8(ascii: "}"))
    }
}

extension LogLevel {
    /// The terminal escape sequence.
    fileprivate var colour: String {
        switch self {
        case .trace, .debug: "\u{1B}[2m"
        case .info: "\u{1B}[32m"
        case .notice: "\u{1B}[36m"
        case .warning: "\u{1B}[33m"
        case .error: "\u{1B}[31m"
        case .critical: "\u{1B}[1;31m"
        }
    }
}

extension String {
    fileprivate var needsQuotes: Bool {
        utf8.isEmpty || utf8.contains { $0 <= 0x20 || "\"\\=".utf8.contains($0) }
    }
}

extension [UInt8] {
    /// A value that is not text, in the same form for both formats; non-finite numbers are strings, because JSON has
    /// none.
    fileprivate mutating func appendNumber(_ value: LogValue) {
        switch value {
        case .string(let text): appendEscaped(text, quoted: true)
        case .integer(let number): self += String(number).utf8
        case .boolean(let flag): self += (flag ? "true" : "false").utf8
        case .number(let number) where !number.isFinite: self += "\"\(number)\"".utf8
        case .number(let number): self += "\(number)".utf8
        case .duration(let duration):
            let (seconds, attoseconds) = duration.components
            self += "\(Double(seconds) + Double(attoseconds / 1_000_000_000_000) / 1e6)".utf8
        }
    }

    /// Text with line breaks and control characters escaped as in JSON, cut at `LogLine.longestText`.
    ///
    /// Quotes and backslashes are escaped only in quotes.
    fileprivate mutating func appendEscaped(_ text: String, quoted: Bool) {
        let quote = UInt8(ascii: "\"")
        if quoted { append(quote) }
        var space = LogLine.longestText
        for scalar in text.unicodeScalars {
            space -= UTF8.width(scalar)
            guard space >= 0 else {
                self += "…".utf8
                break
            }
            switch scalar {
            case "\n": self += "\\n".utf8
            case "\r": self += "\\r".utf8
            case "\t": self += "\\t".utf8
            case "\"" where quoted: self += "\\\"".utf8
            case "\\" where quoted: self += "\\\\".utf8
            // C0, DEL and C1 controls, line and paragraph separators.
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}":
                self += "\\u".utf8
                let digits = String(scalar.value, radix: 16)
                self += repeatElement(UInt8(ascii: "0"), count: 4 - digits.utf8.count)
                self += digits.utf8
            default: self += UTF8.encode(scalar)!
            }
        }
        if quoted { append(quote) }
    }

    /// RFC 3339 in UTC with microseconds.
    fileprivate mutating func appendTime(_ microseconds: Int64) {
        let day = Int64(86_400_000_000)
        let days = microseconds >= 0 ? microseconds / day : (microseconds + 1) / day - 1
        let time = microseconds - days * day
        // Converts days to the Gregorian calendar, in eras of 400 years that begin on 1 March.
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let civilMonth = month < 10 ? month + 3 : month - 9
        appendDigits(yearOfEra + era * 400 + (civilMonth <= 2 ? 1 : 0), 4)
        append(UInt8(ascii: "-"))
        appendDigits(civilMonth, 2)
        append(UInt8(ascii: "-"))
        appendDigits(dayOfYear - (153 * month + 2) / 5 + 1, 2)
        append(UInt8(ascii: "T"))
        appendDigits(time / 3_600_000_000, 2)
        append(UInt8(ascii: ":"))
        appendDigits(time / 60_000_000 % 60, 2)
        append(UInt8(ascii: ":"))
        appendDigits(time / 1_000_000 % 60, 2)
        append(UInt8(ascii: "."))
        appendDigits(time % 1_000_000, 6)
        append(UInt8(ascii: "Z"))
    }

    private mutating func appendDigits(_ number: Int64, _ width: Int) {
        let digits = String(number)
        self += repeatElement(UInt8(ascii: "0"), count: Swift.max(0, width - digits.utf8.count))
        self += digits.utf8
    }
}
