import ChangeLog
import Synchronization
import Testing

private let place = TopicPartition(.uploads, 0)

/// Counts across tasks.
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
                "has a producer wait while the queue is full, and takes what waits in order", settings: smallQueue
            ) {
                subject, log in
                let producer = try await log.producer()
                let enqueued = Counter()
                var tasks: [Task<AppendReceipt, any Error>] = []
                try await subject.whileWritesStall(log) {
                    // Each runs at once, up to where it waits for room.
                    for number in 0..<12 {
                        tasks.append(
                            Task.immediate {
                                let value = [UInt8](repeating: UInt8(number), count: 1000)
                                let receipt = try await producer.enqueue([NewRecord(to: place, value: value)])
                                enqueued.add()
                                return receipt
                            })
                    }
                    #expect((1...4).contains(enqueued.count), "records of 1000 bytes in a queue of 4096")
                }
                for task in tasks { try await task.value.offsets() }
                let records = try await log.records(of: place, count: 12)
                #expect(records.map { $0.value[0] } == (0..<12).map { UInt8($0) })
                await producer.close()
            },
            LogBehaviour("takes an append that is larger than the queue", settings: smallQueue) { _, log in
                let producer = try await log.producer()
                let value = [UInt8](repeating: 1, count: 100_000)
                try await producer.append([NewRecord(to: place, value: value)])
                #expect(try await log.records(of: place, count: 1).map(\.value.count) == [100_000])
                await producer.close()
            },
            LogBehaviour("appends nothing behind a record that failed, and takes it from another producer") {
                subject, log in
                let producer = try await log.producer()
                try await producer.append([NewRecord(to: place, value: [0])])
                try await subject.whileAppendsFail(log) {
                    // Each is enqueued, or refused where the failure of the one before is known already.
                    let tasks = (1...3).map { number in
                        Task.immediate { try await producer.append([NewRecord(to: place, value: [UInt8(number)])]) }
                    }
                    for task in tasks { await #expect(throws: ChangeLogError.self) { try await task.value } }
                }
                await expectError(.producerFailed) { try await producer.append([NewRecord(to: place, value: [4])]) }
                await producer.close()
                let successor = try await log.producer()
                try await successor.append([NewRecord(to: place, value: [5])])
                #expect(try await log.records(of: place, count: 2).map(\.value) == [[0], [5]])
                #expect(try await log.range(of: place).end == log.records(of: place, count: 2)[1].offset + 1)
                await successor.close()
            },
            LogBehaviour("fails with an error that names the cause") { subject, log in
                let producer = try await log.producer()
                try await subject.whileAppendsFail(log) {
                    let error = await #expect(throws: ChangeLogError.self) {
                        try await producer.append([NewRecord(to: place, value: [0])])
                    }
                    #expect(error?.message.isEmpty == false)
                    #expect(error?.code != .producerFailed)
                }
                await producer.close()
            },
            LogBehaviour("closes a producer after all it took is written, and then refuses more") { subject, log in
                let producer = try await log.producer()
                let closed = Counter()
                var receipts: [AppendReceipt] = []
                var closing: Task<Void, Never>?
                try await subject.whileWritesStall(log) {
                    for number in 0..<50 {
                        receipts.append(try await producer.enqueue([NewRecord(to: place, value: [UInt8(number)])]))
                    }
                    closing = Task.immediate {
                        await producer.close()
                        closed.add()
                    }
                    #expect(closed.count == 0)
                    await expectError(.closed) { _ = try await producer.enqueue([NewRecord(to: place, value: [])]) }
                }
                await closing?.value
                #expect(try await log.range(of: place).end >= 50)
                #expect(try await log.records(of: place, count: 50).map { $0.value[0] } == (0..<50).map { UInt8($0) })
                for receipt in receipts { try await receipt.offsets() }
                await producer.close()
            },
            LogBehaviour("closes only after what it took is written or refused", settings: smallQueue) { subject, log in
                let producer = try await log.producer()
                var tasks: [Task<[Int64], any Error>] = []
                var closing: Task<Void, any Error>?
                try await subject.whileWritesStall(log) {
                    for number in 0..<40 {
                        tasks.append(
                            Task.immediate {
                                let value = [UInt8](repeating: UInt8(number), count: 500)
                                return try await producer.append([NewRecord(to: place, value: value)])
                            })
                    }
                    closing = Task { try await subject.close(log) }
                    // The last one waits for room, and is refused before anything is written.
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
                #expect(try await reopened.range(of: place).end == Int64(accepted.count))
                let records = try await reopened.records(of: place, count: accepted.count)
                #expect(records.map { $0.value[0] } == accepted)
                try await subject.close(reopened)
            },
        ]
    }
}
