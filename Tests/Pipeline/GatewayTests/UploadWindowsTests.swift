import AsyncPrimitives
import FanOutLink
import SyncModel
import TestClocks
import Testing

@testable import Gateway

/// A caller's uploads wait for its earlier ones, which other callers need not (I10).
@Suite(.timeLimit(.minutes(5))) struct UploadWindowsTests {
    private static let target = Duration.milliseconds(250)
    /// The window of a caller that has had no upload for a while.
    private static let first = 4
    private static let largest = 64

    private let clock = ManualClock()
    private let windows: UploadWindows
    private let abuser = SyncID(unchecked: "a")
    private let other = SyncID(unchecked: "b")

    init() {
        windows = UploadWindows(
            partitions: 1, target: Self.target, maximumWaitingBytes: 1000, clock: GatewayClock(clock))
    }

    private func reference(_ offset: Int) -> UploadReference { UploadReference(partition: 0, offset: Int64(offset)) }

    /// All uploads up to this one can be pulled.
    private func pass(_ offset: Int) { windows.passed(StreamReport(reference(offset))) }

    /// Appends at once.
    private func append(_ offsets: Range<Int>, of caller: SyncID) async throws {
        for offset in offsets {
            #expect(try await windows.enter(caller, bytes: 100) == false)
            windows.appended(reference(offset), of: caller)
        }
    }

    /// An upload that takes no time, as where stages are near.
    private func passFast() async throws {
        try await append(-1..<0, of: other)
        pass(-1)
    }

    /// Begins to enter; returns once that waits.
    private func enterLater(_ caller: SyncID, waiting count: Int = 1) async -> Task<Bool, any Error> {
        let task = Task { try await windows.enter(caller, bytes: 100) }
        await clock.sleepers(count)
        return task
    }

    @Test func anUploadBeyondTheWindowWaitsUntilAnEarlierOneCanBePulled() async throws {
        try await append(0..<Self.first, of: abuser)
        let waiting = await enterLater(abuser)
        // Others do not wait for it.
        try await append(10..<11, of: other)
        pass(0)
        #expect(try await waiting.value)
        windows.appended(reference(11), of: abuser)
        // The window has grown by one, since the first could be pulled soon.
        try await append(12..<13, of: abuser)
        _ = await enterLater(abuser)
    }

    @Test func theWindowShrinksToOneUploadWhileTheyTakeLong() async throws {
        try await passFast()
        try await append(0..<Self.first, of: abuser)
        // Halved once for all that took long at the same time, to 2, and then to 1.
        clock.advance(by: Self.target + .milliseconds(1))
        pass(2)
        try await append(4..<5, of: abuser)
        clock.advance(by: Self.target + .milliseconds(1))
        let first = await enterLater(abuser)
        pass(3)
        let second = await enterLater(abuser, waiting: 2)
        pass(4)
        #expect(try await first.value)
        windows.appended(reference(5), of: abuser)
        pass(5)
        #expect(try await second.value)
    }

    /// Two uploads at once, of which the second takes more than half of the target after the first.
    private func passExpensive() async throws {
        try await append(0..<2, of: abuser)
        clock.advance(by: Self.target * 2 / 5)
        pass(0)
        clock.advance(by: Self.target * 13 / 25)
        pass(1)
    }

    /// The window is larger, but an expensive upload may come with cheap ones, which say little of the next expensive one.
    @Test func afterAnExpensiveUploadACallerHasOneAtATimeUntilOthersWereCheap() async throws {
        try await passExpensive()
        try await append(2..<3, of: abuser)
        let second = await enterLater(abuser)
        pass(2)
        #expect(try await second.value)
        windows.appended(reference(3), of: abuser)
        try await append(4..<5, of: abuser)
        let third = await enterLater(abuser)
        pass(4)
        #expect(try await third.value)
    }

    @Test func aCallerWithoutUploadsIsRememberedForFiveSeconds() async throws {
        try await passExpensive()
        clock.advance(by: .seconds(4))
        try await append(2..<3, of: abuser)
        let waiting = await enterLater(abuser)
        pass(2)
        #expect(try await waiting.value)
        windows.appended(reference(3), of: abuser)
        pass(3)
        clock.advance(by: .seconds(5))
        try await append(4..<4 + Self.first, of: abuser)
        _ = await enterLater(abuser)
    }

    /// One upload more than its first window had for each that could be pulled.
    private func grow() async throws {
        try await append(0..<Self.first, of: abuser)
        pass(Self.first - 1)
    }

    @Test func aCallerThatUploadsNowAndThenKeepsItsWindow() async throws {
        try await grow()
        clock.advance(by: .seconds(4))
        try await append(4..<4 + Self.first * 2, of: abuser)
        _ = await enterLater(abuser)
    }

    /// Callers with an upload each.
    private func passOthers(_ offsets: Range<Int>) async throws {
        for offset in offsets {
            try await append(offset..<offset + 1, of: SyncID(unchecked: "c\(offset)"))
            pass(offset)
        }
    }

    /// However many names callers make up.
    @Test(arguments: [(9_999, 2), (10_000, 1)])
    func theWindowsOfTenThousandCallersWithoutUploadsAreRemembered(others: Int, growth: Int) async throws {
        try await grow()
        try await passOthers(4..<4 + others)
        try await append(20_000..<20_000 + Self.first * growth, of: abuser)
        _ = await enterLater(abuser)
    }

    /// They do not make place by forgetting those of others.
    @Test func callersThatWereIdleForLongMakePlace() async throws {
        try await passOthers(4..<6000)
        clock.advance(by: .seconds(5))
        try await passOthers(6000..<6001)
        try await append(6001..<6001 + Self.first, of: abuser)
        pass(6000 + Self.first)
        try await passOthers(7000..<12_000)
        try await append(20_000..<20_000 + Self.first * 2, of: abuser)
        _ = await enterLater(abuser)
    }

    /// As on brokers and a database that are far away.
    @Test(arguments: [100, 150, 200]) func theTimeOnTheWayThroughTheStagesIsNoCost(milliseconds: Int) async throws {
        let latency = Duration.milliseconds(milliseconds)
        for round in 0..<50 {
            try await append(round * Self.first..<(round + 1) * Self.first, of: abuser)
            clock.advance(by: latency)
            for offset in round * Self.first..<(round + 1) * Self.first { pass(offset) }
        }
    }

    /// A little longer than the target.
    private static let longWay = Duration.milliseconds(300)

    @Test func theWindowGrowsWhereTheWayThroughTheStagesIsLong() async throws {
        try await append(0..<Self.first, of: abuser)
        clock.advance(by: Self.longWay)
        pass(2)
        try await append(4..<4 + Self.first + 2, of: abuser)
        _ = await enterLater(abuser)
    }

    /// They pass one after the other although the stream is idle.
    @Test func uploadsAtAnIntervalCostNoMoreThanTheyTakeLongerThanTheirWay() async throws {
        let interval = Self.longWay / 3
        for offset in 0..<50 {
            try await append(offset..<offset + 1, of: abuser)
            clock.advance(by: interval)
            if offset >= 2 { pass(offset - 2) }
        }
    }

    /// One that passes right behind another's took its way as well.
    @Test func theWayIsThatOfAnUploadFromItsAppend() async throws {
        let way = Self.target * 3 / 4
        try await append(0..<1, of: other)
        try await append(1..<2, of: abuser)
        clock.advance(by: way)
        pass(0)
        clock.advance(by: .milliseconds(1))
        pass(1)
        try await append(2..<2 + Self.first, of: abuser)
        clock.advance(by: way)
        pass(4)
        // Four took no longer than their way, so the window is four larger, of which one is taken.
        try await append(6..<6 + Self.first + 3, of: abuser)
        _ = await enterLater(abuser)
    }

    /// As where a partition's leader is now in another region.
    @Test func theWayIsForgottenAfterTwentySeconds() async throws {
        try await passFast()
        for offset in 0..<70 {
            try await append(offset..<offset + 1, of: other)
            clock.advance(by: Self.longWay)
            pass(offset)
        }
        try await append(100..<100 + Self.first, of: abuser)
        clock.advance(by: Self.longWay)
        pass(102)
        try await append(104..<104 + Self.first + 2, of: abuser)
        _ = await enterLater(abuser)
    }

    /// A caller that was alone in a stream has made it slow for all, and one that comes then has not seen it faster.
    @Test func whatIsLongerThanAQuarterOfASecondIsNoWay() async throws {
        try await append(0..<Self.first, of: abuser)
        clock.advance(by: .milliseconds(250) + Self.target + .milliseconds(1))
        pass(2)
        try await append(4..<5, of: abuser)
        _ = await enterLater(abuser)
    }

    /// It is not known whose it was.
    @Test func theTimeThatUploadsOfSeveralCallersTookTogetherIsNoCost() async throws {
        try await append(0..<1, of: other)
        try await append(1..<2, of: abuser)
        try await append(2..<3, of: other)
        clock.advance(by: .milliseconds(1))
        pass(0)
        clock.advance(by: Self.target * 2)
        pass(2)
        // The window is 2, and with this cost it would have one.
        try await append(3..<5, of: abuser)
        _ = await enterLater(abuser)
    }

    /// A leader of the log's partition was replaced, for example.
    @Test func theTimeInWhichAStreamAppliesNothingIsNoCost() async throws {
        try await append(0..<2, of: abuser)
        clock.advance(by: .milliseconds(1))
        pass(0)
        clock.advance(by: .seconds(5))
        pass(1)
        // The window is 2, and with this cost it would have one.
        try await append(2..<4, of: abuser)
        _ = await enterLater(abuser)
    }

    @Test func anUploadThatFailsOrIsRefusedFreesItsPlace() async throws {
        try await append(0..<Self.first, of: abuser)
        let first = await enterLater(abuser)
        windows.refused(reference(2))
        #expect(try await first.value)
        let second = await enterLater(abuser)
        windows.failed(abuser)
        #expect(try await second.value)
    }

    @Test func anUploadThatIsReportedBeforeItsAppendTakesNoPlace() async throws {
        pass(100)
        try await append(0..<50, of: abuser)
    }

    @Test func whoHasNoPlaceInFiveSecondsIsRefused() async throws {
        try await append(0..<1, of: other)
        try await append(1..<1 + Self.first, of: abuser)
        let waiting = await enterLater(abuser)
        clock.advance(by: .seconds(4))
        // The partition continues, with uploads of another caller.
        pass(0)
        clock.advance(by: .seconds(1))
        let problem = await #expect(throws: Problem.self) { try await waiting.value }
        #expect(problem?.code == .rateLimited)
        #expect(problem?.retryAfter == 1)
    }

    @Test func theWindowIsTheLargestWhileTheStreamAppliesNothing() async throws {
        try await append(0..<Self.first, of: abuser)
        let waiting = await enterLater(abuser)
        clock.advance(by: .seconds(5))
        #expect(try await waiting.value)
        windows.appended(reference(10), of: abuser)
        try await append(11..<10 + Self.largest - Self.first, of: abuser)
        // As many as it may ever have, also for those that wait until the stream has applied nothing for as long again.
        let further = await enterLater(abuser)
        clock.advance(by: .seconds(5))
        let problem = await #expect(throws: Problem.self) { try await further.value }
        #expect(problem?.code == .rateLimited)
        // The other caller has as many of its own.
        try await append(100..<100 + Self.largest, of: other)
        // They apply again once something could be pulled.
        pass(0)
        _ = await enterLater(abuser)
    }

    /// A large result is applied piece by piece.
    @Test func aStreamThatAppliesPiecesIsNotStalled() async throws {
        try await append(0..<Self.first, of: abuser)
        let waiting = await enterLater(abuser)
        for _ in 0..<2 {
            clock.advance(by: .milliseconds(2400))
            windows.passed(StreamReport(partition: 0))
        }
        clock.advance(by: .milliseconds(200))
        let problem = await #expect(throws: Problem.self) { try await waiting.value }
        #expect(problem?.code == .rateLimited)
    }

    @Test func anUploadTakesAsLongAsAllItsPieces() async throws {
        try await passFast()
        try await append(0..<Self.first, of: abuser)
        let first = await enterLater(abuser)
        clock.advance(by: Self.target)
        windows.passed(StreamReport(partition: 0))
        clock.advance(by: .milliseconds(1))
        pass(1)
        // The window is 2, and both are taken.
        _ = await enterLater(abuser, waiting: 2)
        pass(2)
        #expect(try await first.value)
    }

    @Test func theTimeOfOthersUploadsCountsForThem() async throws {
        try await append(0..<1, of: abuser)
        try await append(1..<1 + Self.first, of: other)
        clock.advance(by: .seconds(1))
        pass(0)
        clock.advance(by: .milliseconds(1))
        pass(1)
        // One was done, and the window is one larger.
        try await append(10..<12, of: other)
        _ = await enterLater(other)
    }

    /// As when the log takes no appends.
    @Test func windowsDoNotApplyWhileNothingIsAppended() async throws {
        for _ in 0..<Self.first { _ = try await windows.enter(abuser, bytes: 100) }
        let waiting = await enterLater(abuser)
        clock.advance(by: .seconds(5))
        #expect(try await waiting.value)
    }

    @Test func whoEntersDuringAStallDoesNotOvertake() async throws {
        try await append(0..<Self.first, of: abuser)
        clock.advance(by: .seconds(4))
        let waiting = await enterLater(abuser)
        clock.advance(by: .seconds(1))
        #expect(try await windows.enter(abuser, bytes: 100) == false)
        // Admitted with it, long before its own deadline.
        #expect(try await waiting.value)
    }

    @Test func uploadsThatWaitHoldABoundedSizeAndLeaveAShareToOthers() async throws {
        try await append(0..<Self.first, of: abuser)
        try await append(10..<10 + Self.first, of: other)
        for count in 1...5 { _ = await enterLater(abuser, waiting: count) }
        // 500 of 1000 bytes wait, all of them its own.
        await #expect(throws: Problem.self) { try await windows.enter(abuser, bytes: 100) }
        let waiting = await enterLater(other, waiting: 6)
        pass(20)
        #expect(try await waiting.value)
    }

    @Test func aCancelledUploadLeavesTheOthersTheirTurns() async throws {
        try await append(0..<Self.first, of: abuser)
        let first = await enterLater(abuser)
        let second = await enterLater(abuser, waiting: 2)
        first.cancel()
        await #expect(throws: Problem.self) { try await first.value }
        pass(0)
        #expect(try await second.value)
    }
}
