import ChangeLog
import Dispatch
import Kafka
import TestResources
import TestSignals
import Testing

@testable import KafkaChangeLog

@Suite(.timeLimit(.minutes(5))) struct BlockingCallsTests {
    @Test func partitionsWhoseLeadersDoNotRespondDoNotDelayOthers() async throws {
        let calls = try await BlockingCalls(threads: 2)
        let silent = try await silentPartitions(8, calls)
        let gate = ThreadGate()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for partition in silent {
                group.addTask {
                    try await calls.runAtLeader(of: partition) { _ throws(KafkaError) in gate.pass() }
                }
            }
            await gate.isReached()
            for number in 0..<10_000 {
                let partition = TopicPartition(.ordered, number)
                #expect(try await calls.runAtLeader(of: partition) { _ throws(KafkaError) in number } == number)
            }
            for _ in silent { gate.open() }
            try await group.waitForAll()
        }

        // They have responded: their calls need not wait for each other.
        let held = [ThreadGate(), ThreadGate()]
        async let third: Void = calls.runAtLeader(of: silent[0]) { _ throws(KafkaError) in held[0].pass() }
        async let fourth: Void = calls.runAtLeader(of: silent[1]) { _ throws(KafkaError) in held[1].pass() }
        for gate in held { await gate.isReached() }
        for gate in held { gate.open() }
        try await third
        try await fourth
        await calls.close()
    }

    /// As those of many pulls whose stream is behind.
    @Test func callsThatWereQueuedBeforeTheirLeaderFellSilentDoNotDelayOthers() async throws {
        let calls = try await BlockingCalls(threads: 2)
        let partition = TopicPartition(.changes, 0)
        let begun = Signal<Void>()
        let (first, later) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        try await withThrowingTaskGroup(of: Void.self) { group in
            func call(until end: DispatchSemaphore) {
                group.addTask {
                    await #expect(throws: ChangeLogError.self) {
                        try await calls.runAtLeader(of: partition) { _ throws(KafkaError) in
                            begun.send()
                            end.wait()
                            throw KafkaError(.timedOut, message: "no response", isRetriable: true)
                        }
                    }
                }
            }
            // One on each thread, and those that wait behind them.
            for _ in 0..<2 { call(until: first) }
            for _ in 0..<2 { await begun.next() }
            for _ in 0..<4 { call(until: later) }
            for _ in 0..<1000 { await Task.yield() }
            for _ in 0..<2 { first.signal() }
            await begun.next()
            let other = TopicPartition(.changes, 1)
            for number in 0..<100 {
                #expect(try await calls.runAtLeader(of: other) { _ throws(KafkaError) in number } == number)
            }
            for _ in 0..<4 { later.signal() }
            try await group.waitForAll()
        }
        await calls.close()
    }

    @Test func callsThatWaitForSilentLeadersDoNotDelayTheEnd() async throws {
        let calls = try await BlockingCalls(threads: 2)
        let silent = try await silentPartitions(2, calls)
        let gate = ThreadGate()
        async let running: Void = calls.runAtLeader(of: silent[0]) { _ throws(KafkaError) in gate.pass() }
        await gate.isReached()
        let waiting = Task {
            try await calls.runAtLeader(of: silent[1]) { _ throws(KafkaError) in Issue.record("runs after the end") }
        }
        async let closing: Void = calls.close()
        while !calls.isClosed && !Task.isCancelled { await Task.yield() }
        gate.open()
        try await running
        let error = await #expect(throws: ChangeLogError.self) { try await waiting.value }
        #expect(error?.code == .closed)
        await closing
    }

    /// Partitions whose leaders have not responded.
    private func silentPartitions(_ count: Int, _ calls: BlockingCalls) async throws -> [TopicPartition] {
        let partitions = (0..<count).map { TopicPartition(.changes, $0) }
        for partition in partitions {
            await #expect(throws: ChangeLogError.self) {
                try await calls.runAtLeader(of: partition) { _ throws(KafkaError) in
                    throw KafkaError(.timedOut, message: "no response", isRetriable: true)
                }
            }
        }
        return partitions
    }
}
