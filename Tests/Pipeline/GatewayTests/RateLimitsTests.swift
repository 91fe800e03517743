import HTTP
import Metrics
import SyncModel
import TestClocks
import Testing

@testable import Gateway

/// The limits of rates by themselves; `RateLimitTests` has them behind HTTP.
@Suite struct RateLimitsTests {
    private let clock = ManualClock()

    private func limits(
        _ caller: Rates = Rates(), _ device: Rates = Rates(), maximumEntries: Int = RateLimits.maximumEntries
    ) -> RateLimits {
        RateLimits(caller: caller, device: device, clock: GatewayClock(clock), maximumEntries: maximumEntries)
    }

    private func isAccepted(
        _ limits: RateLimits, _ caller: SyncID, _ device: KnowledgeID? = nil, _ cost: RateCost = .request
    ) -> Bool {
        do {
            try limits.take(cost, of: caller, device.map { Device(caller: caller, knowledgeID: $0) })
            return true
        } catch {
            return false
        }
    }

    @Test func aRefusedRequestTakesNoTokensOfOtherBuckets() throws {
        let limits = limits(Rates(requests: 1, changes: 10), Rates(requests: 1, changes: 1))
        #expect(isAccepted(limits, .abc, .k1, RateCost(changes: 10)))
        // The device has no changes left, the caller has 90.
        for _ in 1...100 { #expect(!isAccepted(limits, .abc, .k1, RateCost(changes: 1))) }
        #expect(isAccepted(limits, .abc, .k2, RateCost(changes: 90)))
        #expect(!isAccepted(limits, .abc, KnowledgeID(unchecked: "k3"), RateCost(changes: 1)))
        // Of ten requests two were accepted; the device with refused ones has all but one of its own.
        for _ in 1...8 { #expect(isAccepted(limits, .abc, .k1)) }
        #expect(!isAccepted(limits, .abc, .k1))
        clock.advance(by: .seconds(1))
        #expect(isAccepted(limits, .abc, .k1))
    }

    @Test func devicesOfTheSameNameAreApart() throws {
        let limits = limits(Rates(), Rates(requests: 1))
        for _ in 1...10 { #expect(isAccepted(limits, .abc, .k1)) }
        #expect(!isAccepted(limits, .abc, .k1))
        #expect(isAccepted(limits, .abc, .k2))
        #expect(isAccepted(limits, .xyz, .k1))
    }

    @Test func checkingTakesNothing() throws {
        let limits = limits(Rates(requests: 1))
        for _ in 1...100 { try limits.check(.abc) }
        for _ in 1...10 { #expect(isAccepted(limits, .abc)) }
        #expect(throws: Problem.self) { try limits.check(.abc) }
        try limits.check(.xyz)
    }

    private func touch(_ limits: RateLimits, _ bytes: Int, _ device: KnowledgeID = .k1) {
        limits.touched(bytes, by: Device(caller: .abc, knowledgeID: device))
    }

    private func hasBytes(
        _ limits: RateLimits, _ caller: SyncID = .abc, _ device: KnowledgeID = .k1, besides own: Int = 0
    ) -> Bool {
        do {
            try limits.check(
                Device(caller: caller, knowledgeID: device), RateCost(bytes: 1, requests: 0),
                besides: RateCost(bytes: own, requests: 0))
            return true
        } catch {
            return false
        }
    }

    @Test func touchedRowsTakeBytesOfTheDeviceAndItsCaller() throws {
        let limits = limits(Rates(bytes: 20), Rates(requests: 1, bytes: 10))
        touch(limits, 100)
        #expect(!hasBytes(limits))
        let refused = #expect(throws: Problem.self) {
            try limits.take(RateCost(bytes: 5), of: .abc, Device(caller: .abc, knowledgeID: .k1))
        }
        #expect(refused?.retryAfter == 1 && refused?.code == .rateLimited)
        #expect(refused?.detail == "this device may send or touch 10 bytes per second")
        // No requests, and nothing of others.
        #expect(isAccepted(limits, .abc, .k1))
        #expect(hasBytes(limits, .abc, .k2) && hasBytes(limits, .xyz))
        touch(limits, 100, .k2)
        #expect(!hasBytes(limits, .abc, KnowledgeID(unchecked: "k3")))
        clock.advance(by: .milliseconds(100))
        #expect(hasBytes(limits))
    }

    /// As where a stream that was away reports what it has missed: a device waits ten seconds more at most.
    @Test func touchedRowsLeaveNoMoreThanAFullBucketToEarn() throws {
        let limits = limits(Rates(), Rates(bytes: 10))
        for _ in 1...1000 { touch(limits, 150) }
        #expect(!hasBytes(limits))
        clock.advance(by: .milliseconds(10_000))
        #expect(!hasBytes(limits))
        clock.advance(by: .milliseconds(100))
        #expect(hasBytes(limits))
    }

    @Test func whatOneUploadTouchesAboveAMebibyteCountsSixteenTimes() throws {
        for (bytes, seconds) in [(1 << 20, 0.0), ((1 << 20) + 1000, 16_000.0)] {
            // A tenth of the bucket is what a second earns.
            let limits = limits(Rates(), Rates(bytes: 1 << 20))
            for _ in 1...9 { touch(limits, 1 << 20) }
            touch(limits, bytes)
            #expect(!hasBytes(limits))
            clock.advance(by: .seconds((seconds + 0.5) / Double(1 << 20)))
            #expect(!hasBytes(limits))
            clock.advance(by: .seconds(1 / Double(1 << 20)))
            #expect(hasBytes(limits))
        }
    }

    @Test func anUploadDoesNotWaitForItsOwnBytes() throws {
        let limits = limits(Rates(), Rates(bytes: 10))
        #expect(isAccepted(limits, .abc, .k1, RateCost(bytes: 100)))
        #expect(!hasBytes(limits))
        #expect(hasBytes(limits, besides: 100))
        touch(limits, 150)
        #expect(!hasBytes(limits, besides: 100))
    }

    @Test func noSizeIsTooLargeToCount() throws {
        let limits = limits(Rates(), Rates(bytes: 10))
        touch(limits, .max)
        #expect(!hasBytes(limits))
        clock.advance(by: .seconds(11))
        #expect(hasBytes(limits))
    }

    @Test func touchedRowsOfMoreDevicesThanAreTrackedCostNothing() throws {
        let limits = limits(Rates(), Rates(bytes: 10), maximumEntries: 320)
        for number in 1...1000 { touch(limits, 1000, KnowledgeID(unchecked: "k\(number)")) }
        #expect(limits.count <= 320)
        #expect((1...1000).contains { hasBytes(limits, .abc, KnowledgeID(unchecked: "k\($0)")) })
    }

    @Test func keepsABoundedNumberOfEntries() throws {
        let limits = limits(Rates(requests: 100), Rates(requests: 1), maximumEntries: 320)
        func send(_ number: Int) -> Bool { isAccepted(limits, SyncID(unchecked: "c\(number)"), .k1) }
        // All that are accepted lack tokens: without its entry, each could send twice as much.
        let accepted = (1...1000).count { send($0) }
        #expect(accepted >= 100)
        #expect(accepted < 200)
        #expect(limits.count <= 320)
        #expect((1...1000).count { send($0) } < 200)
        // Once their buckets are full, entries are removed for others.
        clock.advance(by: .seconds(10))
        #expect((2001...2020).allSatisfy { send($0) })
        #expect(limits.count <= 320)
    }

    @Test func forgetsThoseWithFullBuckets() throws {
        let limits = limits(Rates(requests: 1), Rates(requests: 1))
        for number in 1...100_000 {
            clock.advance(by: .milliseconds(100))
            #expect(isAccepted(limits, SyncID(unchecked: "c\(number)"), .k1))
        }
        // A request's tokens are back after a second: ten callers at a time lack some.
        #expect(limits.count <= 2000)
    }

    @Test func namesThePolicyWithTheLeastShareLeft() throws {
        let limits = limits(Rates(requests: 100, changes: 7, bytes: 1000), Rates(requests: 2))
        func fields(_ cost: RateCost, _ device: KnowledgeID? = .k1) throws -> [String] {
            let device = device.map { Device(caller: .abc, knowledgeID: $0) }
            return try #require(try limits.take(cost, of: .abc, device)).fields.map { "\($0.name): \($0.value)" }
        }
        #expect(
            try fields(.request, nil) == [
                #"RateLimit-Policy: "caller-requests";q=1000;w=10"#, #"RateLimit: "caller-requests";r=999;t=1"#,
            ])
        #expect(
            try fields(.request) == [
                #"RateLimit-Policy: "caller-requests";q=1000;w=10, "device-requests";q=20;w=10"#,
                #"RateLimit: "device-requests";r=19;t=1"#,
            ])
        #expect(
            try fields(RateCost(changes: 50, bytes: 5000)) == [
                #"RateLimit-Policy: "caller-requests";q=1000;w=10, "caller-changes";q=70;w=10;qu="changes", "#
                    + #""caller-bytes";q=10000;w=10;qu="content-bytes", "device-requests";q=20;w=10"#,
                #"RateLimit: "caller-changes";r=20;t=8"#,
            ])
        #expect(try fields(RateCost(changes: 0, bytes: 4500)).last == #"RateLimit: "caller-bytes";r=500;t=10"#)
    }

    /// A byte a second.
    @Test func aDaysBytesMayBeUsedAtOnceAndComeBackContinuously() throws {
        let limits = limits(Rates(dailyBytes: 86_400))
        let small = RateCost(bytes: 1, logged: 100)
        #expect(isAccepted(limits, .abc, .k1, RateCost(bytes: 1, logged: 86_390)))
        let refused = #expect(throws: Problem.self) { try limits.take(small, of: .abc) }
        #expect(refused?.code == .rateLimited && refused?.retryAfter == 90)
        #expect(refused?.detail == "this caller may send 86400 bytes of changes a day")
        #expect(
            refused?.headers.map { "\($0.name): \($0.value)" } == [
                #"RateLimit-Policy: "caller-daily-bytes";q=86400;w=86400;qu="content-bytes""#,
                #"RateLimit: "caller-daily-bytes";r=10;t=90"#,
            ])
        // What takes nothing of the log is not held, nor are others.
        #expect(isAccepted(limits, .abc, .k1))
        #expect(isAccepted(limits, .abc, .k1, RateCost(bytes: 1 << 40)))
        #expect(isAccepted(limits, .xyz, .k1, small))
        clock.advance(by: .seconds(89))
        #expect(!isAccepted(limits, .abc, .k1, small))
        clock.advance(by: .seconds(1))
        #expect(isAccepted(limits, .abc, .k1, small))
        // More than a day allows is accepted where nothing was used before.
        #expect(isAccepted(limits, .xyz, .k1, RateCost(bytes: 1, logged: 86_300)))
        clock.advance(by: .seconds(86_400))
        #expect(isAccepted(limits, .xyz, .k1, RateCost(bytes: 1, logged: 1 << 30)))
        #expect(!isAccepted(limits, .xyz, .k1, small))
    }

    @Test func whatWasUsedOfADayIsNotForgottenWhileOthersCome() throws {
        let limits = limits(Rates(dailyBytes: 86_400))
        #expect(isAccepted(limits, .abc, nil, RateCost(bytes: 1, logged: 86_400)))
        for number in 1...10_000 {
            clock.advance(by: .seconds(1))
            #expect(isAccepted(limits, SyncID(unchecked: "c\(number)"), nil, RateCost(bytes: 1, logged: 1)))
        }
        #expect(limits.count <= 2000)
        #expect(!isAccepted(limits, .abc, nil, RateCost(bytes: 1, logged: 20_000)))
        #expect(isAccepted(limits, .abc, nil, RateCost(bytes: 1, logged: 10_000)))
    }

    @Test func withoutLimitsThereAreNoHeaders() throws {
        #expect(try limits().take(RateCost(changes: 1 << 40, bytes: 1 << 50), of: .abc) == nil)
        #expect(limits().count == 0)
    }
}
