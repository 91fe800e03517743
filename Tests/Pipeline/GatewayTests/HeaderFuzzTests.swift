import Foundation
import Fuzzing
import SyncModel
import Testing

@testable import Gateway
@testable import HTTP

/// Whatever headers hold: the caller is refused, or has ids that are ids; preferences stay within their bounds.
@Suite struct HeaderFuzzTests {
    private static let corpus: [[UInt8]] = [
        "abc\nxyz:write,other:read\nwait=10\napplication/json; charset=utf-8",
        "%C3%A9%2C\n a%3Ab:read , c:write,\nrespond-async, wait=\"5\"\nAPPLICATION/JSON",
        "a", "a\n\nwait=99999999999999999999", "*\n*:read\nwait=-1; wait=2",
    ].map { Array($0.utf8) }

    private static let words = [
        "%00", "%", "%zz", "%ff", ":read", ":write", ":", ",", "wait=", "=", ";", "\n", "\"", "charset=", "\u{0}", "é",
    ]

    @Test func refusesOrAuthenticatesCallers() throws {
        let address = try Self.address()
        let tally = try Fuzzer(
            "headers", count: TestLength.count(5000, long: 100_000), corpus: Self.corpus, words: Self.words
        ).run { bytes in
            let names = ["X-Sync-Id", "X-Sync-Links", "Prefer", "Content-Type"]
            var headers = HTTPHeaders()
            for (name, value) in zip(
                names, bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false))
            {
                Array(name.utf8).withUnsafeBufferPointer { name in
                    Array(value).withUnsafeBufferPointer { headers.append(name: name, value: $0) }
                }
            }
            let request = HTTPRequest(
                method: .post, rawPath: "/", segments: [], query: [], headers: headers, peer: address,
                version: .http11, body: .empty)
            if let wait = Preference.wait(of: request) {
                guard wait >= .zero, wait <= .seconds(Envelope.maximumWait) else {
                    throw Fuzzer.BrokenPromise("waits for \(wait)")
                }
            }
            let caller: Caller
            do throws(Problem) {
                guard case .known(let known) = try NoAuthentication().caller(of: request) else { return .refused }
                caller = known
            } catch {
                guard error.code == .unauthenticated else { throw Fuzzer.BrokenPromise("\(error)") }
                return .refused
            }
            let owners = caller.grants.map(\.owner)
            guard Set(owners).count == owners.count, owners.first == caller.syncID,
                owners.allSatisfy({ SyncID(utf8: Array($0.text.utf8)) == $0 })
            else { throw Fuzzer.BrokenPromise("\(caller)") }
            return .accepted
        }
        #expect(tally.accepted > 300 && tally.refused > 300, "\(tally)")
    }

    private static func address() throws -> HTTPPeer {
        var storage = sockaddr_storage()
        storage.ss_family = sa_family_t(AF_INET)
        return try #require(HTTPPeer(storage))
    }
}
