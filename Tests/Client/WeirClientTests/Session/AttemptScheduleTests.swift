import Foundation
import Fuzzing
import Seeded
import Testing
import WeirClient

@Suite struct AttemptScheduleTests {
    private func schedule(_ seed: UInt64 = 1) -> AttemptSchedule {
        AttemptSchedule(.init(), random: SeededRandom(seed: seed))
    }

    /// Uploads that stall until the next write are what users of other libraries report.
    @Test func whileSomethingIsPendingASessionIsDueOrUnderWay() throws {
        for seed in 0..<UInt64(TestLength.count(300, long: 20_000)) {
            var random = SeededRandom(seed: seed)
            var schedule = schedule(seed)
            var now = Duration.zero
            var (isPending, isAttempting, wroteMeanwhile) = (false, false, false)
            for step in 0..<200 {
                now += .milliseconds(Int.random(in: 0...2000, using: &random))
                switch Int.random(in: 0..<10, using: &random) {
                case 0...1:
                    schedule.record(.localWrite, at: now)
                    (isPending, wroteMeanwhile) = (true, true)
                case 2: schedule.record(.serverMoved, at: now)
                case 3: schedule.record(.nudged, at: now)
                case 4: schedule.record(.watching(Bool.random(using: &random)), at: now)
                default:
                    if isAttempting {
                        isAttempting = false
                        switch Int.random(in: 0..<4, using: &random) {
                        case 0: schedule.record(.failed(SyncError(.unreachable, "lost")), at: now)
                        case 1: schedule.record(.failed(SyncError(.forbidden, "no")), at: now)
                        case 2: schedule.record(.leased, at: now)
                        default:
                            let rest = Int.random(in: 0..<4, using: &random) == 0
                            schedule.record(.succeeded(isPending: rest), at: now)
                            isPending = rest || wroteMeanwhile
                        }
                    } else if let next = schedule.next {
                        now = max(now, next)
                        schedule.record(.began, at: now)
                        (isAttempting, wroteMeanwhile) = (true, false)
                    }
                }
                if isAttempting {
                    #expect(schedule.next == nil, "seed \(seed), step \(step): two sessions")
                } else if isPending {
                    #expect(schedule.isPending, "seed \(seed), step \(step): forgotten")
                    let next = try #require(schedule.next, "seed \(seed), step \(step): stalled")
                    #expect(next <= now + .seconds(3600), "seed \(seed), step \(step): stalled until \(next)")
                }
            }
        }
    }

    @Test func writesWithinAMomentAreSentTogether() {
        var schedule = schedule()
        schedule.record(.began, at: .zero)
        schedule.record(.succeeded(isPending: false), at: .seconds(1))
        schedule.record(.watching(true), at: .seconds(1))
        #expect(schedule.next == nil)
        // A steady writer does not move the session.
        for write in 0..<50 { schedule.record(.localWrite, at: .seconds(10) + .milliseconds(10 * write)) }
        #expect(schedule.next == .seconds(10) + .milliseconds(100))
    }

    @Test func whatHappensDuringASessionMakesTheNextOneDue() {
        for event in [AttemptSchedule.Event.localWrite, .serverMoved, .nudged] {
            var schedule = schedule()
            schedule.record(.watching(true), at: .zero)
            schedule.record(.began, at: .zero)
            schedule.record(event, at: .seconds(1))
            #expect(schedule.next == nil)
            schedule.record(.succeeded(isPending: false), at: .seconds(2))
            #expect(schedule.next.map { $0 <= .seconds(2) } == true)
        }
    }

    @Test func onlyANudgeShortensAPauseAndNotTheServers() {
        var schedule = schedule()
        schedule.record(.began, at: .zero)
        schedule.record(.failed(SyncError(.forbidden, "no")), at: .seconds(1))
        let pause = schedule.next
        #expect(pause.map { $0 > .seconds(2) } == true)
        schedule.record(.localWrite, at: .seconds(1))
        schedule.record(.serverMoved, at: .seconds(1))
        #expect(schedule.next == pause)
        schedule.record(.nudged, at: .seconds(2))
        #expect(schedule.next.map { $0 <= .seconds(2) } == true)
        schedule.record(.began, at: .seconds(2))
        let busy = SyncError(.problem(503, "overloaded", retryAfter: "30"), now: .distantPast)
        schedule.record(.failed(busy!), at: .seconds(3))
        schedule.record(.nudged, at: .seconds(4))
        #expect(schedule.next == .seconds(33))
    }

    /// A server whose event stream has ended may be another version when it is there again.
    @Test func whatCouldNotBeSentIsTriedOnceTheEventStreamIsOpenedAgain() {
        for isPending in [true, false] {
            var schedule = schedule()
            schedule.record(.watching(true), at: .zero)
            schedule.record(.began, at: .zero)
            schedule.record(.succeeded(isPending: isPending), at: .seconds(1))
            // Each piece of the stream says that it is open.
            schedule.record(.watching(true), at: .seconds(15))
            #expect(schedule.next == (isPending ? .seconds(301) : nil))
            schedule.record(.watching(false), at: .seconds(20))
            #expect(schedule.next == .seconds(301))
            schedule.record(.watching(true), at: .seconds(30))
            #expect(schedule.next == (isPending ? .seconds(30) : nil))
        }
    }

    @Test func withoutEventsOfTheServerItIsAskedFromTimeToTime() {
        var schedule = schedule()
        schedule.record(.began, at: .zero)
        schedule.record(.succeeded(isPending: false), at: .seconds(1))
        #expect(schedule.next == .seconds(301))
        schedule.record(.watching(true), at: .seconds(2))
        #expect(schedule.next == nil)
        schedule.record(.watching(false), at: .seconds(3))
        #expect(schedule.next == .seconds(301))
        // What could not be sent is tried again, whatever the server says.
        schedule.record(.watching(true), at: .seconds(4))
        schedule.record(.began, at: .seconds(301))
        schedule.record(.succeeded(isPending: true), at: .seconds(302))
        #expect(schedule.next == .seconds(602))
    }

    @Test func theNextSessionIsDueSoonAfterOneThatHasStoredSomethingBeforeItFailed() {
        let longestPause = { (hasProgressed: Bool, error: SyncError) -> Duration in
            var schedule = schedule()
            var now = Duration.zero
            return (0..<30).map { _ in
                schedule.record(.began, at: now)
                if hasProgressed { schedule.record(.progressed, at: now) }
                schedule.record(.failed(error), at: now)
                let pause = (schedule.next ?? now) - now
                now += pause
                return pause
            }.max() ?? .zero
        }
        let lost = SyncError(.unreachable, "lost")
        #expect(longestPause(false, lost) > .seconds(100))
        #expect(longestPause(true, lost) <= .seconds(1))
        // Each session may store pages although its batch is refused, or one before the server refuses more.
        let busy = SyncError(.problem(503, "overloaded"), now: .distantPast)
        #expect(longestPause(true, busy!) > .seconds(100))
    }

    @Test func thePauseThatTheServerAsksForCountsAlsoAfterProgress() {
        var schedule = schedule()
        schedule.record(.began, at: .zero)
        schedule.record(.progressed, at: .zero)
        let busy = SyncError(.problem(503, "overloaded", retryAfter: "30"), now: .distantPast)
        schedule.record(.failed(busy!), at: .seconds(1))
        #expect(schedule.next.map { $0 >= .seconds(31) && $0 <= .seconds(32) } == true)
    }
}
