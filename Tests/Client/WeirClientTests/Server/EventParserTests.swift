import Testing
import WeirClient

@Suite struct EventParserTests {
    private static let stream =
        "\u{FEFF}event: head\ndata: {\"syncId\":\"abc\",\"head\":103}\n\n:\n\n: keep-alive\r\n\r\nevent:head\rdata:1\rdata: 2\r\r"
        + "id: 7\nretry: 10\nevent: only\n\ndata\n\nevent: crlf\r\ndata: ü\r\n\r\ndata: not complete\n"
    private static let events = [
        ServerEvent(name: "head", data: "{\"syncId\":\"abc\",\"head\":103}"), ServerEvent(name: "head", data: "1\n2"),
        ServerEvent(name: "message", data: ""), ServerEvent(name: "crlf", data: "ü"),
    ]

    @Test func readsTheSameEventsInAnyPieces() throws {
        let bytes = Array(Self.stream.utf8)
        for first in 0...bytes.count {
            for size in [1, 2, 7, bytes.count] {
                var parser = EventParser()
                var events = try parser.read(Array(bytes[..<first]))
                var rest = bytes[first...]
                while !rest.isEmpty {
                    events += try parser.read(Array(rest.prefix(size)))
                    rest = rest.dropFirst(size)
                }
                #expect(events == Self.events, "cut at \(first), then each \(size)")
            }
        }
    }

    @Test func anEndlessLineOrEventFails() throws {
        for line in ["data: aaaaaaaaaaaaaaaaaaaaa", "data: aaaaaaaaaaaaaaaaa\n"] {
            var parser = EventParser()
            #expect(throws: EventParser.TooLong.self) {
                for _ in 0..<10_000 { _ = try parser.read(Array(line.utf8)) }
            }
        }
        // Many events of usual length do not.
        var parser = EventParser()
        for _ in 0..<10_000 { #expect(try parser.read(Array("data: aaaaaaaaa\n\n".utf8)).count == 1) }
    }
}
