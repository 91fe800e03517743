import Fuzzing
import Testing

@testable import HTTP

/// Whatever a request's target and framing hold: they are refused, or read the same by other means.
@Suite struct TargetFuzzTests {
    private static let targets: [[UInt8]] = [
        "/v1/batches/7", "/", "*", "/v1/a%2Fb/%C3%A9/", "http://example.org:80/v1/sync", "HTTPS://a/b", "//", "/%00",
        "/a//b/.././c", "",
    ].map { Array($0.utf8) }

    @Test func targetsAreRefusedOrSplitIntoSegments() throws {
        let words = ["%", "%2F", "%00", "%ff", "%C3", "/", "//", "..", "http://", "*", "é", "?", "#"]
        let tally = try Fuzzer(
            "target", count: TestLength.count(5000, long: 100_000), corpus: Self.targets, words: words
        ).run { bytes in
            try bytes.withUnsafeBufferPointer { target in
                guard let path = HTTPTarget.path(of: target), let segments = HTTPTarget.segments(of: path) else {
                    return .refused
                }
                guard segments.allSatisfy({ !$0.utf8.contains(0) }), path.count <= bytes.count,
                    segments.reduce(0, { $0 + $1.utf8.count }) <= path.count
                else { throw Fuzzer.BrokenPromise("\(segments)") }
                guard path.first == UInt8(ascii: "/"), path.count > 1 else { return .accepted }
                // Encoded again and split again it is the same.
                let again = segments.map { "/" + $0.utf8.map { "%" + Self.hex($0) }.joined() }.joined()
                let same = Array(again.utf8).withUnsafeBufferPointer { HTTPTarget.segments(of: $0[...]) }
                guard same == (segments == [""] && again == "/" ? [] : segments) else {
                    throw Fuzzer.BrokenPromise("\(segments), then \(String(describing: same))")
                }
                return .accepted
            }
        }
        #expect(tally.accepted > 300 && tally.refused > 300, "\(tally)")
    }

    private static func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }

    @Test func framingsAreRefusedOrUnambiguous() throws {
        let corpus = [
            "L5", "Tchunked", "L5\nEgzip", "Egzip\nTCHUNKED", "L0", "L5\nL5", "Eidentity", "L99999999999999999999",
        ]
        let words = ["L", "T", "E", "\n", "chunked", "gzip", "x-gzip", "identity", "5", "-", "+", " ", ",", "br"]
        let tally = try Fuzzer(
            "framing", count: TestLength.count(5000, long: 100_000), corpus: corpus.map { Array($0.utf8) }, words: words
        ).run { bytes in
            let fields = bytes.split(separator: UInt8(ascii: "\n"))
            var headers = HTTPHeaders()
            for field in fields {
                let names: [UInt8: String] = [
                    UInt8(ascii: "L"): "Content-Length", UInt8(ascii: "T"): "Transfer-Encoding",
                    UInt8(ascii: "E"): "Content-Encoding",
                ]
                let name = Array((field.first.flatMap { names[$0] } ?? "X-Other").utf8)
                name.withUnsafeBufferPointer { name in
                    Array(field.dropFirst()).withUnsafeBufferPointer { headers.append(name: name, value: $0) }
                }
            }
            do throws(RefusedRequest) {
                let framing = try BodyFraming(headers, version: .http11)
                guard !(framing.isChunked && framing.declared != nil), framing.declared ?? 0 >= 0,
                    framing.isChunked == !headers.all("transfer-encoding").isEmpty
                else { throw RefusedRequest(.invalidResponse, "\(framing)") }
                return .accepted
            } catch {
                guard [400, 415].contains(error.refusal.reason.status) else {
                    throw Fuzzer.BrokenPromise(error.refusal.detail)
                }
                return .refused
            }
        }
        #expect(tally.accepted > 300 && tally.refused > 300, "\(tally)")
    }
}
