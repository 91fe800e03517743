import FanOutLink
import SyncModel
import TestClocks
import Testing

@testable import Gateway

/// Uploads with changes for other owners wait for the partitions of those, too (I10).
@Suite(.timeLimit(.minutes(5))) struct LinkedWindowsTests {
    private static let target = Duration.milliseconds(250)
    /// The window of a caller that has had no upload for a while.
    private static let first = 4
    private static let largest = 64
    private static let partitions = 4

    private let clock = ManualClock()
    private let windows: UploadWindows
    private let abuser = Self.caller(in: 0)
    private let neighbour = Self.caller(in: 0, except: Self.caller(in: 0))
    private let linked = Self.caller(in: 1)

    init() {
        windows = UploadWindows(
            partitions: Self.partitions, target: Self.target, maximumWaitingBytes: 10_000, clock: GatewayClock(clock))
    }

    private static func caller(in partition: Int, except other: SyncID? = nil) -> SyncID {
        let partitioning = Partitioning(count: partitions)
        return (0...).lazy.map { SyncID(unchecked: "caller\($0)") }
            .first { partitioning.partition(of: $0) == partition && $0 != other }!
    }

    /// Appends at once.
    private func append(
        _ offsets: Range<Int>, of caller: SyncID, in partition: Int = 0, naming others: Set<Int> = [1]
    ) async throws {
        for offset in offsets {
            #expect(try await windows.enter(caller, bytes: 100) == false)
            windows.appended(
                UploadReference(partition: partition, offset: Int64(offset)), of: caller, naming: others)
        }
    }

    /// Begins to enter; returns once that waits.
    private func enterLater(_ caller: SyncID, waiting count: Int = 1) async -> Task<Bool, any Error> {
        let task = Task { try await windows.enter(caller, bytes: 100) }
        await clock.sleepers(count)
        return task
    }

    /// A stream shows all parts of the uploads of a partition up to this one; that of the partition itself says which upload has a part
    /// elsewhere last.
    private func pass(
        _ offset: Int64, of source: Int = 0, in stream: Int, part: Int = 0, elsewhere: [Int: Int64] = [:]
    ) {
        windows.passed(
            StreamReport(
                partition: stream, uploads: [source: UploadProgress(offset: offset, part: part)],
                partsElsewhere: elsewhere))
    }

    @Test func anUploadHasItsPlaceUntilEachPartitionThatItWritesHasPassedIt() async throws {
        try await append(0..<Self.first, of: abuser, naming: [1, 2])
        // Their own parts are empty, and can be pulled at once.
        pass(3, in: 0, elsewhere: [1: 3, 2: 3])
        let first = await enterLater(abuser)
        pass(0, in: 1, part: 1)
        let second = await enterLater(abuser, waiting: 2)
        pass(1, in: 2, part: 2)
        // One has ended, which is one place, and one more since it took no time.
        #expect(try await first.value)
        #expect(try await second.value)
        let third = await enterLater(abuser)
        pass(1, in: 1, part: 1)
        #expect(try await third.value)
    }

    @Test func aStreamThatIsAheadOfTheCallersFreesThePlaceLater() async throws {
        try await append(0..<Self.first, of: abuser)
        pass(3, in: 1, part: 1)
        let waiting = await enterLater(abuser)
        pass(3, in: 0, elsewhere: [1: 3])
        #expect(try await waiting.value)
        // Reported before the append.
        pass(9, in: 0, elsewhere: [1: 9])
        pass(9, in: 1, part: 1)
        windows.appended(UploadReference(partition: 0, offset: 9), of: abuser, naming: [1])
        pass(40, in: 0, elsewhere: [1: 9])
        try await append(10..<40, of: abuser)
    }

    /// Its changes for the other owner were refused, for example.
    @Test func anUploadDoesNotWaitForAPartitionInWhichItHasNoPart() async throws {
        try await append(0..<Self.first, of: abuser)
        let waiting = await enterLater(abuser)
        pass(0, in: 0)
        #expect(try await waiting.value)
        windows.appended(UploadReference(partition: 0, offset: 4), of: abuser, naming: [1])
        pass(4, in: 0, elsewhere: [1: 0])
        // None of the five has a place any more, and each has made the window one larger.
        try await append(5..<5 + Self.first + 5, of: abuser)
        _ = await enterLater(abuser)
    }

    @Test func callersWithoutChangesForTheOwnerDoNotWaitForItsPartition() async throws {
        try await append(0..<Self.first, of: abuser)
        try await append(10..<10 + Self.first, of: neighbour, naming: [])
        let waiting = await enterLater(abuser)
        pass(13, in: 0, elsewhere: [1: 3])
        try await append(20..<20 + Self.first, of: neighbour, naming: [])
        // The owner itself has a window of its own.
        try await append(0..<Self.first, of: linked, in: 1, naming: [])
        _ = await enterLater(abuser, waiting: 2)
        pass(0, in: 1, part: 1)
        #expect(try await waiting.value)
    }

    @Test func theWindowShrinksWhileThePartitionOfAnotherOwnerTakesLong() async throws {
        // One that takes no time, as where stages are near.
        try await append(0..<1, of: linked, in: 1, naming: [])
        pass(0, of: 1, in: 1)
        try await append(0..<Self.first, of: abuser)
        pass(3, in: 0, elsewhere: [1: 3])
        clock.advance(by: Self.target + .milliseconds(1))
        let first = await enterLater(abuser)
        // The window is 2.
        pass(1, in: 1, part: 1)
        let second = await enterLater(abuser, waiting: 2)
        pass(2, in: 1, part: 1)
        #expect(try await first.value)
        pass(3, in: 1, part: 1)
        #expect(try await second.value)
    }

    /// It waited for no other upload there.
    @Test func theTimeOnTheWayIntoAnotherStreamIsNoCost() async throws {
        try await append(0..<1, of: abuser)
        clock.advance(by: .milliseconds(100))
        pass(0, in: 0, elsewhere: [1: 0])
        clock.advance(by: .milliseconds(120))
        pass(0, in: 1, part: 1)
        // It is one larger.
        try await append(1..<1 + Self.first + 1, of: abuser)
        _ = await enterLater(abuser)
    }

    /// A linked caller's parts cost its own window, not that of the partition's owners.
    @Test func theTimeOfALinkedCallersPartsDoesNotCountForTheOwnersUploads() async throws {
        try await append(0..<1, of: abuser)
        try await append(0..<Self.first, of: linked, in: 1, naming: [])
        pass(0, in: 0, elsewhere: [1: 0])
        clock.advance(by: .seconds(1))
        pass(0, in: 1, part: 1)
        clock.advance(by: .milliseconds(1))
        pass(0, of: 1, in: 1)
        // One was done, and the window is one larger.
        try await append(10..<12, of: linked, in: 1, naming: [])
        _ = await enterLater(linked)
    }

    @Test func theWindowIsTheLargestWhileTheStreamOfAnotherOwnerAppliesNothing() async throws {
        try await append(0..<Self.first, of: abuser)
        pass(3, in: 0, elsewhere: [1: 3])
        let waiting = await enterLater(abuser)
        clock.advance(by: .seconds(4))
        // The caller's own stream continues.
        pass(3, in: 0, part: 1)
        clock.advance(by: .seconds(1))
        #expect(try await waiting.value)
        windows.appended(UploadReference(partition: 0, offset: 4), of: abuser, naming: [])
        try await append(5..<Self.largest, of: abuser, naming: [])
        _ = await enterLater(abuser)
    }
}
