import ChangeLog
import Synchronization
import Testing

private let partition = TopicPartition(.uploads, 0)

/// A counter shared by tasks.
private final class Counter: Sendable {
    private let value = Mutex(0)

    var count: Int { value.withLock { $0 } }

    func add() { value.withLock { $0 += 1 } }
}

extension LogBehaviour {
    private static var smallQueue: LogSettings {
        var settings = LogSettings()
        settings.queueBytes = 4096
        return settings
    }

    static var failing: [LogBehaviour] {
        [
            LogBehaviour(
                "makes a producer wait while the queue is full, and keeps the order", settings: smallQueue
            ) {
                subject, log in
                let producer = try await log.producer()
                let enqueued = Counter()
                var tasks: [Task<AppendReceipt, any Error>] = []
                try await subject.whileWritesStall(log) {
                    // Each runs until it waits for space in the queue.
                    for number in 0..<12 {
                        tasks.append(
                            Task.immediate {
                                let value = [UInt8](repeating: UInt8(number), count: 1000)
                                let receipt = try await producer.enqueue([NewRecord(to: partition, value: value)])
                                enqueued.add()
                                return receipt
                            })
                    }
                    #expect((1...4).contains(enqueued.count), "records of 1000 bytes in a queue of 4096")
                }
                for task in tasks { try await task.value.offsets() }
                let records = try await log.records(of: partition, count: 12)
                #expect(records.map { $0.value[0] } == (0..<12).map { UInt8($0) })
                await producer.close()
            },
            LogBehaviour("accepts an append that is larger than the queue", settings: smallQueue) { _, log in
                let producer = try await log.producer()
                let value = [UInt8](repeating: 1, count: 100_000)
                try await producer.append([NewRecord(to: partition, value: value)])
                #expect(try await log.records(of: partition, count: 1).map(\.value.count) == [100_000])
                await producer.close()
            },
            LogBehaviour("appends nothing after a failed record, until there is another producer") {
                subject, log in
                let producer = try await log.producer()
                try await producer.append([NewRecord(to: partition, value: [0])])
                try await subject.whileAppendsFail(log) {
                    // Each is enqueued, or refused if the failure of an earlier one is known already.
                    let tasks = (1...3).map { number in
                        Task.immediate { try await producer.append([NewRecord(to: partition, value: [UInt8(number)])]) }
                    }
                    for task in tasks { await #expect(throws: ChangeLogError.self) { try await task.value } }
                }
                await expectError(.producerFailed) { try await producer.append([NewRecord(to: partition, value: [4])]) }
                await producer.close()
                let successor = try await log.producer()
                try await successor.append([NewRecord(to: partition, value: [5])])
                #expect(try await log.records(of: partition, count: 2).map(\.value) == [[0], [5]])
                #expect(try await log.range(of: partition).end == log.records(of: partition, count: 2)[1].offset + 1)
                await successor.close()
            },
            LogBehaviour("fails with an error that names the cause") { subject, log in
                let producer = try await log.producer()
                try await subject.whileAppendsFail(log) {
                    let error = await #expect(throws: ChangeLogError.self) {
                        try await producer.append([NewRecord(to: partition, value: [0])])
                    }
                    #expect(error?.message.isEmpty == false)
                    #expect(error?.code != .producerFailed)
                }
                await producer.close()
            },
            LogBehaviour("closes a producer after its records are written, and refuses further ones") { subject, log in
                let producer = try await log.producer()
                let closed = Counter()
                var receipts: [AppendReceipt] = []
                var closing: Task<Void, Never>?
                try await subject.whileWritesStall(log) {
                    for number in 0..<50 {
                        receipts.append(try await producer.enqueue([NewRecord(to: partition, value: [UInt8(number)])]))
                    }
                    closing = Task.immediate {
                        await producer.close()
                        closed.add()
                    }
                    #expect(closed.count == 0)
                    await expectError(.closed) { _ = try await producer.enqueue([NewRecord(to: partition, value: [])]) }
                }
                await closing?.value
                #expect(try await log.range(of: partition).end >= 50)
                #expect(
                    try await log.records(of: partition, count: 50).map { $0.value[0] } == (0..<50).map { UInt8($0) })
                for receipt in receipts { try await receipt.offsets() }
                await producer.close()
            },
            LogBehaviour("closes only after enqueued records are written or refused", settings: smallQueue) {
                subject, log in
                let producer = try await log.producer()
                var tasks: [Task<[Int64], any Error>] = []
                var closing: Task<Void, any Error>?
                try await subject.whileWritesStall(log) {
                    for number in 0..<40 {
                        tasks.append(
                            Task.immediate {
                                let value = [UInt8](repeating: UInt8(number), count: 500)
                                return try await producer.append([NewRecord(to: partition, value: value)])
                            })
                    }
                    closing = Task { try await subject.close(log) }
                    // The last one waits for space, and is refused before the others are written.
                    _ = await tasks[39].result
                }
                try await closing?.value
                var accepted: [UInt8] = []
                for (number, task) in tasks.enumerated() {
                    switch await task.result {
                    case .success: accepted.append(UInt8(number))
                    case .failure(let error): #expect((error as? ChangeLogError)?.code == .closed)
                    }
                }
                #expect(!accepted.isEmpty && accepted.count < 40)
                let reopened = try await subject.open(smallQueue)
                #expect(try await reopened.range(of: partition).end == Int64(accepted.count))
                let records = try await reopened.records(of: partition, count: accepted.count)
                #expect(records.map { $0.value[0] } == accepted)
                try await subject.close(reopened)
            },
        ]
    }
}
