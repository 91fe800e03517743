/// An event of an event stream.
package struct ServerEvent: Equatable, Sendable {
    /// `message` where the stream names none.
    package let name: String
    package let data: String

    package init(name: String, data: String) {
        self.name = name
        self.data = data
    }
}

/// Reads server-sent events, in whatever pieces they arrive (https://html.spec.whatwg.org/multipage/server-sent-events.html).
package struct EventParser {
    /// A line or an event has more bytes than any of the contract.
    package struct TooLong: Error, Equatable {}

    /// Events of the contract have some hundred bytes; an id has up to 255, each of which JSON may escape.
    static let mostBytes = 16 * 1024

    private var line: [UInt8] = []
    /// The last byte was CR: an LF that follows belongs to it.
    private var endsWithCR = false
    private var isFirstLine = true
    private var name = ""
    private var data: [UInt8] = []
    private var hasData = false

    package init() {}

    /// Reads the next piece.
    ///
    /// - Returns: the events that are complete with it.
    package mutating func read(_ piece: [UInt8]) throws -> [ServerEvent] {
        var events: [ServerEvent] = []
        for byte in piece {
            if byte == UInt8(ascii: "\n"), endsWithCR {
                endsWithCR = false
                continue
            }
            endsWithCR = byte == UInt8(ascii: "\r")
            if endsWithCR || byte == UInt8(ascii: "\n") {
                if let event = endLine() { events.append(event) }
            } else {
                line.append(byte)
            }
            if line.count + data.count > Self.mostBytes { throw TooLong() }
        }
        return events
    }

    private mutating func endLine() -> ServerEvent? {
        defer {
            line = []
            isFirstLine = false
        }
        if isFirstLine, line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
        if line.isEmpty { return endEvent() }
        let colon = line.firstIndex(of: UInt8(ascii: ":"))
        var value = colon.map { line[($0 + 1)...] } ?? []
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        // A line that begins with a colon is a comment. `id` and `retry` mean nothing here: each connection begins with all heads.
        switch String(decoding: line[..<(colon ?? line.endIndex)], as: UTF8.self) {
        case "event": name = String(decoding: value, as: UTF8.self)
        case "data":
            if hasData { data.append(UInt8(ascii: "\n")) }
            data += value
            hasData = true
        default: break
        }
        return nil
    }

    private mutating func endEvent() -> ServerEvent? {
        defer { (name, data, hasData) = ("", [], false) }
        guard hasData else { return nil }
        return ServerEvent(name: name.isEmpty ? "message" : name, data: String(decoding: data, as: UTF8.self))
    }
}
