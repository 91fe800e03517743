import AsyncPrimitives
import ChangeLog
import Testing

@testable import LocalLog

@Suite(.timeLimit(.minutes(5))) struct WorkQueueTests {
    private let producer = ProducerState()

    private func append(
        _ number: Int, bytes: Int, of producer: ProducerState? = nil, to partition: Int = 0
    ) throws -> Append {
        let producer = producer ?? self.producer
        try producer.begin()
        let key = Array("\(number)".utf8)
        let record = NewRecord(
            to: TopicPartition(.uploads, partition), key: key,
            value: [UInt8](repeating: 0, count: bytes - 64 - key.count))
        return Append(records: [record], partitions: [partition], producer: producer, promise: LogPromise())
    }

    private func numbers(_ work: LogWork?) -> [Int] {
        (work?.appends ?? []).compactMap { Int(String(decoding: $0.records[0].key, as: UTF8.self)) }
    }

    @Test func noAppendOvertakesALargeOneThatWaits() async throws {
        let queue = WorkQueue(maximumBytes: 1000)
        try await queue.add(append(0, bytes: 600))
        let waiting = try [append(1, bytes: 900), append(2, bytes: 100), append(3, bytes: 300)].map { append in
            Task.immediate { try await queue.add(append) }
        }
        var order: [Int] = []
        for _ in 0..<3 {
            let work = await queue.next()
            order += numbers(work)
            queue.finish(work?.appends ?? [])
        }
        #expect(order == [0, 1, 2, 3])
        for task in waiting { try await task.value }
    }

    @Test func freesCapacityOnlyWhenTheWriterHasFinished() async throws {
        let queue = WorkQueue(maximumBytes: 1000)
        try await queue.add(append(0, bytes: 1000))
        let second = try append(1, bytes: 100)
        let task = Task.immediate { try await queue.add(second) }
        let first = await queue.next()
        #expect(numbers(first) == [0])
        #expect(numbers(await queue.next(isWaiting: false)) == [])
        queue.finish(first?.appends ?? [])
        #expect(numbers(await queue.next(isWaiting: false)) == [1])
        try await task.value
    }

    @Test func givesTheWriterAllQueuedWorkAtOnce() async throws {
        let queue = WorkQueue(maximumBytes: 100_000)
        for number in 0..<10 { try await queue.add(append(number, bytes: 100)) }
        #expect(numbers(await queue.next()) == Array(0..<10))
    }

    /// Of large appends a transaction has 512 KiB, of small ones 2 MiB; the appends are uploads.
    @Test func aSmallAppendWaitsForOneLargeOneOfAnotherProducerOrPartition() async throws {
        let queue = WorkQueue(maximumBytes: 100 << 20)
        let other = ProducerState()
        for number in 0..<5 { try await queue.add(append(number, bytes: 1 << 20)) }
        let first = await queue.next()
        #expect(numbers(first) == [0])
        try await queue.add(append(100, bytes: 100, of: other))
        try await queue.add(append(200, bytes: 100, to: 1))
        queue.finish(first?.appends ?? [])
        var order: [[Int]] = []
        for _ in 0..<4 {
            let work = await queue.next(isWaiting: false)
            order.append(numbers(work))
            queue.finish(work?.appends ?? [])
        }
        #expect(order == [[100, 200, 1], [2], [3], [4]])
    }

    @Test func closingRejectsWaitingAppendsAndKeepsQueuedOnes() async throws {
        let queue = WorkQueue(maximumBytes: 1000)
        try await queue.add(append(0, bytes: 1000))
        let second = try append(1, bytes: 100)
        let task = Task.immediate { try await queue.add(second) }
        queue.close()
        await #expect(throws: ChangeLogError.closed("the log")) { try await task.value }
        let third = try append(2, bytes: 100)
        await #expect(throws: ChangeLogError.closed("the log")) { try await queue.add(third) }
        #expect(numbers(await queue.next()) == [0])
        let end = await queue.next()
        #expect(end == nil)
    }

    @Test func wakesAWaitingWriterForWorkAndForTheEnd() async throws {
        let queue = WorkQueue(maximumBytes: 1000)
        let writer = Task.immediate { await queue.next() }
        try await queue.add(append(0, bytes: 100))
        #expect(numbers(await writer.value) == [0])
        let ended = Task.immediate { await queue.next() == nil }
        queue.close()
        #expect(await ended.value)
    }

    @Test func keepsTheOrderUnderConstantLoad() async throws {
        let queue = WorkQueue(maximumBytes: 200)
        var order: [Int] = []
        try await queue.add(append(0, bytes: 200))
        var waiting: [Task<Void, any Error>] = []
        for number in 1...1000 {
            let next = try append(number, bytes: 200)
            waiting.append(Task.immediate { try await queue.add(next) })
            if number > 2 {
                let work = await queue.next()
                order += numbers(work)
                queue.finish(work?.appends ?? [])
            }
        }
        for _ in 0..<3 {
            let work = await queue.next()
            order += numbers(work)
            queue.finish(work?.appends ?? [])
        }
        #expect(order == Array(0...1000))
        for task in waiting { try await task.value }
    }
}
