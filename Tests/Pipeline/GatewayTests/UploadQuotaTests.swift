import SyncModel
import TestClocks
import Testing

@testable import Gateway

@Suite struct UploadQuotaTests {
    @Test func tracksABoundedNumberOfCallers() throws {
        let clock = ManualClock()
        let quota = UploadQuota(
            maximumBytes: 1000, maximumBytesOfCaller: 1000, changesPerSecond: 1, clock: GatewayClock(clock),
            maximumCallers: 3)
        func send(_ caller: Int) throws {
            let caller = SyncID(unchecked: "c\(caller)")
            try quota.enter(caller, bytes: 1, changes: 5)
            quota.leave(caller, bytes: 1)
        }
        for caller in 1...3 { try send(caller) }
        // Each of them still owes: forgetting one would give it its changes twice.
        #expect(throws: Problem.self) { try send(4) }
        #expect(throws: Problem.self) { for _ in 1...2 { try send(1) } }
        clock.advance(by: .seconds(10))
        try send(4)
        for caller in 5...6 { try send(caller) }
        #expect(throws: Problem.self) { try send(7) }
    }

    @Test func removesCallersAtOnceWithoutARate() throws {
        let quota = UploadQuota(
            maximumBytes: 1000, maximumBytesOfCaller: 1000, changesPerSecond: 0, clock: GatewayClock(ManualClock()),
            maximumCallers: 2)
        for caller in 1...100 {
            let caller = SyncID(unchecked: "c\(caller)")
            try quota.enter(caller, bytes: 1, changes: 1_000_000)
            quota.leave(caller, bytes: 1)
        }
        #expect(quota.bytes == 0)
    }
}
