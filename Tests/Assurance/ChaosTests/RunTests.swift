import Foundation
import Testing

@testable import Chaos

/// Faults, waits and events of a run.
struct RunTests {
    private let targets = FaultPlan.Targets(proxies: [3, 1, 2, 2], hasBroker: true, hasDatabase: true)

    private func faults(_ seed: UInt64, _ targets: FaultPlan.Targets, count: Int = 500) -> [Fault] {
        let plan = FaultPlan(seed: seed, perMinute: 20, targets)
        return (0..<count).compactMap { _ in plan.next()?.fault }
    }

    @Test func aSeedGivesTheSameFaults() {
        #expect(faults(1, targets) == faults(1, targets))
        #expect(faults(1, targets) != faults(2, targets))
    }

    @Test func everyTargetGetsEveryKindOfFaultThatItCanHave() {
        var kinds: [Fault.Target: Set<Fault.Kind>] = [:]
        for fault in faults(3, targets, count: 5000) { kinds[fault.target, default: []].insert(fault.kind) }
        for member in 0..<4 { #expect(kinds[.member(member)] == [.kill, .stop, .stall]) }
        for target in [Fault.Target.broker, .database] { #expect(kinds[target] == [.kill, .stop, .stall]) }
        for (member, count) in targets.proxies.enumerated() {
            for proxy in 0..<count { #expect(kinds[.proxy(member: member, proxy)] == [.refuse, .hang, .delay]) }
        }
        #expect(kinds.count == 4 + 2 + 8)
    }

    @Test func brokersAndDatabasesOfOthersGetNoFaults() {
        let others = FaultPlan.Targets(proxies: [0, 0], hasBroker: false, hasDatabase: false)
        #expect(Set(faults(1, others).map(\.target)) == [.member(0), .member(1)])
    }

    @Test func withoutFaultsThereIsNoPlan() {
        #expect(FaultPlan(seed: 1, perMinute: 0, targets).next() == nil)
    }

    @Test func waitsAreSummedUpWithTheFaultsBeforeAndDuringThem() {
        let second: Int64 = 1_000_000_000
        let waits = (1...100).map { WaitLog.Wait(who: "w\($0)", start: 100 * second, end: (100 + Int64($0)) * second) }
        let summary = WaitLog.summary(
            waits,
            [
                .init(text: "long before", start: 0, end: 50 * second),
                .init(text: "before", start: 90 * second, end: 99 * second),
                .init(text: "during", start: 150 * second, end: nil),
                .init(text: "after", start: 200 * second, end: nil),
            ], shown: 2)
        #expect(summary.count == 100)
        #expect(summary.p50 == 51)
        #expect(summary.p99 == 100)
        #expect(summary.longest.map(\.who) == ["w100", "w99"])
        #expect(summary.longest.map(\.faults) == [["during", "before"], ["during", "before"]])
        #expect(WaitLog.summary([], []).p99 == 0)
    }

    @Test func eachProcessIsKilledInTurnForAWhileAndForAMoment() {
        let faults = FaultPlan.inTurn(processes: 3)
        #expect(faults.map(\.target) == [0, 1, 2, 0, 1, 2].map { .member($0) })
        #expect(faults.allSatisfy { $0.kind == .kill })
        #expect(faults.map { $0.milliseconds > 10_000 } == [true, true, true, false, false, false])
    }

    @Test func theLongestWaitsAreKnownForEachFault() {
        let second: Int64 = 1_000_000_000
        func wait(_ start: Int64, _ end: Int64) -> WaitLog.Wait {
            WaitLog.Wait(who: "", start: start * second, end: end * second)
        }
        let waits = WaitLog.caused(
            by: [
                .init(text: "kill one", start: 100 * second, end: 120 * second),
                .init(text: "kill another", start: 200 * second, end: 200 * second),
            ], batches: [wait(80, 99), wait(101, 104), wait(119, 122), wait(186, 196), wait(199, 202)],
            pulls: [wait(203, 204), wait(230, 235)])
        #expect(waits.map(\.fault) == ["kill one", "kill another"])
        #expect(waits.map(\.lasted) == [20, 0])
        // One that begins before the next fault and ends after it may be of either.
        #expect(waits.map(\.batch) == [10, 3])
        #expect(waits.map(\.pull) == [0, 5])
    }

    @Test func aTraceHasTheEventsOfABatchAndTheFaultsBetween() throws {
        let path = NSTemporaryDirectory() + "events-" + UUID().uuidString
        defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: path) } }
        let log = try EventLog(path)
        for text in [
            "FAULT early", "anna/k1 batch 1: sent", "anna/k1 batch 12: sent", "FAULT kill", "anna/k1 batch 1: lost",
            "FAULT late",
        ] { log.record(text) }
        let trace = try log.trace(of: "anna/k1 batch 1", with: " FAULT ")
        #expect(
            trace.map { String($0.drop { $0 != "a" && $0 != "F" }) } == [
                "anna/k1 batch 1: sent", "FAULT kill", "anna/k1 batch 1: lost",
            ])
    }

    @Test func aProcessThatAnotherSignalEndsHasCrashed() {
        #expect(Member.isCrash(SIGSEGV))
        #expect(Member.isCrash(SIGTRAP, after: SIGTERM))
        #expect(!Member.isCrash(SIGTERM, after: SIGTERM))
        #expect(!Member.isCrash(0, after: SIGTERM))
        #expect(!Member.isCrash(1 << 8, after: SIGTERM))
        #expect(Member.objection(to: 0, after: SIGTERM) == nil)
        #expect(Member.objection(to: SIGKILL, after: SIGKILL) == nil)
        #expect(Member.objection(to: 1 << 8, after: SIGTERM) == "exit code 1 after signal 15")
        #expect(Member.objection(to: SIGSEGV, after: SIGTERM) == "signal 11 after signal 15")
    }

    @Test func aReportWithAFindingIsNotSound() {
        func report(_ findings: [Finding]) -> ChaosReport {
            let none = WaitLog.summary([], [])
            return ChaosReport(
                seed: 1, changes: 2, batches: 1, ordered: 2, rotations: 3, revoked: 8, refusedAfter: 0.125, rows: 2,
                repeats: 0, seconds: 1.5, healing: 0.25,
                faults: ["gateway kill": 2], exits: [], batchWaits: none, pullWaits: none, waitsByFault: [],
                findings: findings,
                totalFindings: findings.count)
        }
        #expect(report([]).isSound)
        #expect(report([]).text().contains("every judgment held"))
        #expect(report([]).text().contains("  gateway kill: 2"))
        #expect(
            report([]).text().contains(
                "tokens: 3 changes of keys; 8 devices revoked under load, the last request accepted 0.125 s later"))
        let lost = report([Finding(kind: .lost, text: "anna/k1 batch 1 is gone")])
        #expect(!lost.isSound)
        #expect(lost.text().contains("judged: 1 lost, 0 doubled"))
        #expect(lost.text().contains("lost: anna/k1 batch 1 is gone"))
    }
}
