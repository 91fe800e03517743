import LoadTools
import Testing

@testable import Chaos

/// What is wrong with the answers to a device that is revoked.
struct RevocationTests {
    private let accepted = GatewayClient.Response(status: 202, body: [])
    private let refused = GatewayClient.Response(status: 403, body: Array(#"{"code":"device_revoked"}"#.utf8))

    @Test func aRefusalBeforeTheRevocationIsWrong() {
        let revocation = Revocation()
        #expect(revocation.judge(refused, from: 0, sent: 0) != nil)
        revocation.requested()
        #expect(revocation.judge(refused, from: 0, sent: 0) == nil)
    }

    @Test func aRequestMayBeAcceptedForAShortTime() {
        let revocation = Revocation()
        revocation.requested()
        #expect(revocation.judge(accepted, from: 0, sent: SystemCall.nanoseconds()) == nil)
        #expect(revocation.lastAccepted == 0)
        revocation.answered()
        let now = SystemCall.nanoseconds()
        #expect(revocation.judge(accepted, from: 0, sent: now + 1_000_000_000) == nil)
        #expect(revocation.lastAccepted >= 1)
        #expect(revocation.judge(accepted, from: 1, sent: now + 2_000_000_001) != nil)
        // One that was sent before.
        #expect(revocation.judge(accepted, from: 1, sent: now - 60_000_000_000) == nil)
    }

    @Test func everyGatewayMustRefuse() {
        let revocation = Revocation()
        revocation.requested()
        for gateway in [1, 0, 1] { _ = revocation.judge(refused, from: gateway, sent: 0) }
        _ = revocation.judge(accepted, from: 2, sent: 0)
        #expect(!revocation.hasEnded)
        #expect(revocation.end() == 2)
        #expect(revocation.hasEnded)
    }
}
