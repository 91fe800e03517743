import ChangeLog
import ChangeLogConformance
import MemoryChangeLog
import Testing

@Suite(.timeLimit(.minutes(5))) struct MemoryChangeLogTests {
    private let place = TopicPartition(.uploads, 0)

    @Test(arguments: LogBehaviour<MemoryLogHarness>.all)
    func behavesAsEveryLog(_ behaviour: LogBehaviour<MemoryLogHarness>) async throws {
        try await behaviour.check(MemoryLogHarness())
    }

    @Test func givesTheTimeOfItsClock() async throws {
        let log = MemoryChangeLog(clock: { 1_234_567 })
        try await log.producer().append([NewRecord(to: place, value: [])])
        #expect(try await log.reader(of: place, from: 0).next(maximumBytes: 1).map(\.time) == [1_234_567])
        await log.close()
    }

    @Test func withholdsReceiptsAndCommitsUntilItResumes() async throws {
        let log = MemoryChangeLog()
        log.pause()
        let receipt = try await log.producer().enqueue([NewRecord(to: place, value: [1])])
        #expect(try await log.range(of: place).end == 0)
        log.resume()
        #expect(try await receipt.offsets() == [0])
        #expect(try await log.range(of: place).end == 1)
        await log.close()
    }

    @Test func losesAnAcknowledgementWithoutLosingTheRecord() async throws {
        let log = MemoryChangeLog()
        let lost = ChangeLogError(.inputOutput, message: "the acknowledgement is lost")
        log.failNextAppend(lost, isStored: true)
        let producer = try await log.producer()
        await #expect(throws: lost) { try await producer.append([NewRecord(to: place, value: [1])]) }
        await #expect(throws: ChangeLogError.producerFailed) {
            try await producer.append([NewRecord(to: place, value: [2])])
        }
        #expect(try await log.reader(of: place, from: 0).next(maximumBytes: 1).map(\.value) == [[1]])
        await log.close()
    }

    @Test func losesWhatWasNotWrittenInACrashAndNothingElse() async throws {
        let log = MemoryChangeLog(MemoryLogContents(partitionCount: 2))
        let producer = try await log.producer()
        try await producer.append([NewRecord(to: place, value: [1])])
        log.pause()
        let receipt = try await producer.enqueue([NewRecord(to: place, value: [2])])
        let contents = await log.crash()
        await #expect(throws: ChangeLogError.closed("the log")) { try await receipt.offsets() }
        let reopened = MemoryChangeLog(contents)
        #expect(reopened.partitionCount == 2)
        #expect(try await reopened.range(of: place) == LogRange(start: 0, end: 1))
        await reopened.close()
    }
}
