import FanOutLink
import Fuzzing
import NetworkLink
import SyncModel
import SyncWire
import Testing

/// Messages survive encoding and decoding, and any other bytes are an error, never a trap.
@Suite struct WireTests {
    @Test(arguments: LinkSamples.gatewayMessages) func gatewayMessageSurvivesEncoding(message: GatewayMessage) throws {
        #expect(try GatewayMessage(decoding: message.encode()) == message)
    }

    @Test(arguments: LinkSamples.fanOutMessages) func fanOutMessageSurvivesEncoding(message: FanOutMessage) throws {
        #expect(try FanOutMessage(decoding: message.encode()) == message)
    }

    @Test func waitIsRoundedUpToMicrosecondsAndAtMostADay() throws {
        let waits: [(Duration, Duration)] = [
            (.nanoseconds(1), .microseconds(1)), (.seconds(-3), .zero), (.seconds(1_000_000), LinkFormat.longestWait),
        ]
        for (wait, read) in waits {
            let request = GatewayMessage.request(number: 1, within: wait, .heads([]))
            #expect(try GatewayMessage(decoding: request.encode()) == .request(number: 1, within: read, .heads([])))
        }
    }

    @Test func unknownFieldsAndKindsAreSkipped() throws {
        // Field 30, a string.
        let unknown: [UInt8] = [0xF2, 0x01, 0x01, 0x78]
        let ping = GatewayMessage.ping(received: 5).encode()
        #expect(try GatewayMessage(decoding: ping + unknown) == .ping(received: 5))
        #expect(try GatewayMessage(decoding: [0x08, 0x01] + unknown) == .unknown)
        #expect(try FanOutMessage(decoding: [0x08, 0x01] + unknown) == .unknown)
    }

    @Test func newerFormatIsDistinguishedFromDamage() throws {
        for bytes in [[0x08, 0x02], [0x3A, 0x00, 0x08, 0x02]] as [[UInt8]] {
            let error = try #require(throws: WireError.self) { try GatewayMessage(decoding: bytes) }
            #expect(error.isNewerFormat)
        }
        let error = try #require(throws: WireError.self) { try FanOutMessage(decoding: []) }
        #expect(!error.isNewerFormat)
    }

    @Test func anyBytesAreAnErrorOrAGatewayMessage() throws {
        let corpus = LinkSamples.gatewayMessages.map { $0.encode() }
        let tally = try Fuzzer("GatewayMessage", count: TestLength.count(3000, long: 100_000), corpus: corpus).run {
            bytes in
            let message: GatewayMessage
            do throws(WireError) { message = try GatewayMessage(decoding: bytes) } catch { return .refused }
            guard try GatewayMessage(decoding: message.encode()) == message else {
                throw Fuzzer.BrokenPromise("differs after encoding and decoding")
            }
            return .accepted
        }
        #expect(tally.refused > 50 && tally.accepted > 50, "\(tally)")
    }

    @Test func anyBytesAreAnErrorOrAFanOutMessage() throws {
        let corpus = LinkSamples.fanOutMessages.map { $0.encode() }
        let tally = try Fuzzer("FanOutMessage", count: TestLength.count(3000, long: 100_000), corpus: corpus).run {
            bytes in
            let message: FanOutMessage
            do throws(WireError) { message = try FanOutMessage(decoding: bytes) } catch { return .refused }
            guard try FanOutMessage(decoding: message.encode()) == message else {
                throw Fuzzer.BrokenPromise("differs after encoding and decoding")
            }
            return .accepted
        }
        #expect(tally.refused > 50 && tally.accepted > 50, "\(tally)")
    }
}
