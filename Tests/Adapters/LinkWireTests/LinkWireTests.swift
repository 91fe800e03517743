import FanOutLink
import Fuzzing
import LinkWire
import SyncModel
import SyncWire
import Testing

/// Messages of the link come back as they were sent, and whatever else comes is an error, never a trap.
@Suite struct LinkWireTests {
    @Test(arguments: LinkSamples.requests) func aRequestComesBackAsItWasSent(request: LinkRequest) throws {
        #expect(try LinkRequest(decoding: request.encode()) == request)
    }

    @Test(arguments: LinkSamples.replies) func aReplyComesBackAsItWasSent(reply: LinkReply) throws {
        #expect(try LinkReply(decoding: reply.encode()) == reply)
    }

    @Test func aWaitIsRoundedUpAndNeverLongerThanADay() throws {
        let waits: [(Duration, Duration)] = [
            (.nanoseconds(1), .microseconds(1)), (.seconds(-3), .zero), (.seconds(1_000_000), LinkFormat.longestWait),
        ]
        for (wait, read) in waits {
            let request = LinkRequest.ask(number: 1, within: wait, .heads([]))
            #expect(try LinkRequest(decoding: request.encode()) == .ask(number: 1, within: read, .heads([])))
        }
    }

    @Test func unknownFieldsAndKindsAreSkipped() throws {
        // Field 30, a text.
        let unknown: [UInt8] = [0xF2, 0x01, 0x01, 0x78]
        let ping = LinkRequest.ping(received: 5).encode()
        #expect(try LinkRequest(decoding: ping + unknown) == .ping(received: 5))
        #expect(try LinkRequest(decoding: [0x08, 0x01] + unknown) == .unknown)
        #expect(try LinkReply(decoding: [0x08, 0x01] + unknown) == .unknown)
    }

    @Test func aNewerFormatIsToldFromDamage() throws {
        for bytes in [[0x08, 0x02], [0x3A, 0x00, 0x08, 0x02]] as [[UInt8]] {
            let error = try #require(throws: WireError.self) { try LinkRequest(decoding: bytes) }
            #expect(error.isNewerFormat)
        }
        let error = try #require(throws: WireError.self) { try LinkReply(decoding: []) }
        #expect(!error.isNewerFormat)
    }

    @Test func anyBytesAreAnErrorOrARequest() throws {
        let corpus = LinkSamples.requests.map { $0.encode() }
        let tally = try Fuzzer("LinkRequest", count: TestLength.count(3000, long: 100_000), corpus: corpus).run {
            bytes in
            let request: LinkRequest
            do throws(WireError) { request = try LinkRequest(decoding: bytes) } catch { return .refused }
            guard try LinkRequest(decoding: request.encode()) == request else {
                throw Fuzzer.BrokenPromise("other when written and read again")
            }
            return .accepted
        }
        #expect(tally.refused > 50 && tally.accepted > 50, "\(tally)")
    }

    @Test func anyBytesAreAnErrorOrAReply() throws {
        let corpus = LinkSamples.replies.map { $0.encode() }
        let tally = try Fuzzer("LinkReply", count: TestLength.count(3000, long: 100_000), corpus: corpus).run { bytes in
            let reply: LinkReply
            do throws(WireError) { reply = try LinkReply(decoding: bytes) } catch { return .refused }
            guard try LinkReply(decoding: reply.encode()) == reply else {
                throw Fuzzer.BrokenPromise("other when written and read again")
            }
            return .accepted
        }
        #expect(tally.refused > 50 && tally.accepted > 50, "\(tally)")
    }
}
