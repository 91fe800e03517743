import Fuzzing
import Testing

@testable import Gateway

/// What a gateway finds in the rows that fan-outs send to it.
@Suite struct RowPlacesTests {
    private static let row =
        #"{"table":"n\"ote","id":"i\\","syncId":"abc","knowledgeId":"k1","timeStamp":102,"version":3,"deleted":false,"#
        + #""updatedAt":"2026-01-02T03:04:05.000000Z","writer":{"syncId":"x\"y","knowledgeId":"k\u0001"},"#
        + #""values":{"title":"},\"values\":{","n":{"a":[1,"}"]},"last":null}}"#

    private static func places(in json: [UInt8], at range: Range<Int>) -> RowPlaces? {
        RowPlaces(json.span, at: range)
    }

    @Test func everyPartOfARowIsFound() throws {
        for before in ["", "[[", #"{"table":"#] {
            let json = Array((before + Self.row + ",").utf8)
            let places = try #require(Self.places(in: json, at: before.utf8.count..<json.count - 1))
            func text(_ range: Range<Int>) -> String { String(decoding: json[range], as: UTF8.self) }
            #expect(text(places.id.range) == #""i\\""# && text(places.id.content) == #"i\\"#)
            #expect(places.timeStamp == 102 && text(places.timeStampPlace.range) == "102" && places.version == 3)
            #expect(!places.isDeleted)
            #expect(places.updatedAt.map { text($0.content) } == "2026-01-02T03:04:05.000000Z")
            #expect(text(places.caller.range) == #""x\"y""# && text(places.author.content) == #"k\u0001"#)
            #expect(text(places.values.range) == #"{"title":"},\"values\":{","n":{"a":[1,"}"]},"last":null}"#)
            let count = places.values.memberCount(in: json.span)
            #expect(count == 3)
        }
    }

    @Test func aRowMayHaveNoUpdatedAtAndNoColumns() throws {
        let text =
            #"{"table":"t","id":"","syncId":"","knowledgeId":"","timeStamp":9007199254740991,"version":0,"deleted":true,"#
            + #""writer":{"syncId":"","knowledgeId":""},"values":{}}"#
        let json = Array(text.utf8)
        let places = try #require(Self.places(in: json, at: 0..<json.count))
        #expect(places.isDeleted && places.updatedAt == nil && places.timeStamp == 9_007_199_254_740_991)
        let count = places.values.memberCount(in: json.span)
        #expect(places.values.content.isEmpty && count == 0)
    }

    @Test func whatIsNoRowHasNoPlaces() {
        for (part, other) in [
            (#""table""#, #""tabel""#), (#""id""#, #""Id""#), ("102", ""), ("102", "-1"),
            ("102", "1234567890123456789"),
            ("false", "0"), (#""updatedAt""#, #""updated""#), (#""writer":{"#, #""writer":["#),
            (#""values":{"#, #""values":["#),
            (#"null}}"#, "null}"), (#"null}}"#, "null]}"),
        ] {
            let json = Array(Self.row.replacing(part, with: other, maxReplacements: 1).utf8)
            #expect(Self.places(in: json, at: 0..<json.count) == nil, "\(other)")
        }
        let row = Array(Self.row.utf8)
        for end in 0..<row.count { #expect(Self.places(in: row, at: 0..<end) == nil, "\(end) bytes") }
        #expect(Self.places(in: row, at: 0..<row.count + 1) == nil)
    }

    @Test func damagedRowsHavePlacesInBoundsOrNone() throws {
        let words = [#","id":"#, #""values":{"#, "\\", "\"", "}", "{", "102", "false"]
        let tally = try Fuzzer(
            "RowPlaces", count: TestLength.count(20_000, long: 400_000), corpus: [Array(Self.row.utf8)], words: words
        ).run { bytes in
            guard let places = RowPlaces(bytes.span, at: 0..<bytes.count) else { return .refused }
            for place in [places.id, places.timeStampPlace, places.caller, places.author, places.values] {
                guard 0 < place.range.lowerBound, place.range.upperBound < bytes.count else {
                    throw Fuzzer.BrokenPromise("\(place.range) is outside")
                }
            }
            if let count = places.values.memberCount(in: bytes.span), count < 0 {
                throw Fuzzer.BrokenPromise("\(count) members")
            }
            return .accepted
        }
        #expect(tally.accepted > 200 && tally.refused > 2000, "\(tally)")
    }
}
