import ChangeLog
import Testing

private let partition = TopicPartition(.uploads, 0)

extension LogBehaviour {
    static var waiting: [LogBehaviour] {
        [
            LogBehaviour("wakes every reader that waits at the end") { _, log in
                try await log.append(["before"], to: partition)
                let tasks = try await (0..<8).asyncMap { _ in
                    let reader = try await log.reader(of: partition, from: 1)
                    return Task.immediate { try await reader.next(maximumBytes: 1 << 20) }
                }
                try await log.append(["after"], to: partition)
                for task in tasks { #expect(try await task.value.map(\.value) == [Array("after".utf8)]) }
            },
            LogBehaviour("returns the same records to fast and slow readers") { _, log in
                let readers = 4
                let total = 300
                try await withThrowingTaskGroup(of: [String].self) { group in
                    for _ in 0..<readers {
                        group.addTask {
                            let reader = try await log.reader(of: partition, from: 0)
                            var values: [String] = []
                            while values.count < total {
                                let records = try await reader.next(maximumBytes: 300)
                                values += records.map { String(decoding: $0.value, as: UTF8.self) }
                            }
                            await reader.close()
                            return values
                        }
                    }
                    let producer = try await log.producer()
                    for number in 0..<total {
                        _ = try await producer.enqueue([NewRecord(to: partition, value: Array("\(number)".utf8))])
                    }
                    await producer.close()
                    for try await values in group { #expect(values == (0..<total).map { "\($0)" }) }
                }
            },
            LogBehaviour("ends the wait of a cancelled task, and the reader skips nothing") { _, log in
                let reader = try await log.reader(of: partition, from: 0)
                let waiting = Task.immediate { try await reader.next(maximumBytes: 1) }
                waiting.cancel()
                await #expect(throws: CancellationError.self) { try await waiting.value }
                let late = Task {
                    await untilCancelled()
                    return try await reader.next(maximumBytes: 1)
                }
                late.cancel()
                await #expect(throws: CancellationError.self) { try await late.value }
                try await log.append(["a"], to: partition)
                #expect(try await reader.next(maximumBytes: 1).map(\.value) == [Array("a".utf8)])
                await reader.close()
            },
            LogBehaviour("ends the wait of a reader that is closed, and only its own") { _, log in
                let closed = try await log.reader(of: partition, from: 0)
                let open = try await log.reader(of: partition, from: 0)
                let closing = Task.immediate { try await closed.next(maximumBytes: 1) }
                let staying = Task.immediate { try await open.next(maximumBytes: 1) }
                await closed.close()
                await expectError(.closed) { _ = try await closing.value }
                await expectError(.closed) { _ = try await closed.next(maximumBytes: 1) }
                try await log.append(["a"], to: partition)
                #expect(try await staying.value.count == 1)
                await open.close()
            },
            LogBehaviour("ends everything that belongs to a closed log") { subject, log in
                let reader = try await log.reader(of: partition, from: 0)
                let producer = try await log.producer()
                let membership = try await log.join(group: "readers", topic: .uploads)
                let tracker = WorkerTracker()
                let waiting = Task.immediate { try await reader.next(maximumBytes: 1) }
                let running = Task { try await membership.run { try await tracker.work($0, as: 1) } }
                let assignment = await tracker.assignment(of: 0, by: 1)
                try await subject.close(log)
                await expectError(.closed) { _ = try await waiting.value }
                await expectError(.closed) { try await running.value }
                await expectError(.closed) { _ = try await reader.next(maximumBytes: 1) }
                await expectError(.closed) { try await producer.append([NewRecord(to: partition, value: [])]) }
                await expectError(.closed) { _ = try await assignment.committed() }
                await expectError(.closed) { try await assignment.commit(1) }
                await expectError(.closed) { _ = try await log.join(group: "late", topic: .uploads) }
                await producer.close()
                await membership.leave()
            },
        ]
    }
}

extension Sequence {
    /// The results of an asynchronous body, one after the other.
    func asyncMap<Value>(_ body: (Element) async throws -> Value) async rethrows -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await body(element)) }
        return values
    }
}
