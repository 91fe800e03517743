import ChangeLog
import Synchronization
import Testing

extension LogBehaviour {
    static var groups: [LogBehaviour] {
        [
            LogBehaviour("assigns every partition to exactly one member, as members join and leave") { _, log in
                let tracker = WorkerTracker()
                let first = try await log.join(group: "g", topic: .changes)
                let second = try await log.join(group: "g", topic: .changes)
                let third = try await log.join(group: "g", topic: .changes)
                try await running(first, as: 1, on: tracker) {
                    await tracker.wait { $0.count == 4 && Set($0.values) == [1] }
                    try await running(second, as: 2, on: tracker) {
                        await tracker.wait { $0.count == 4 && Set($0.values) == [1, 2] }
                        try await running(third, as: 3, on: tracker) {
                            await tracker.wait { $0.count == 4 && Set($0.values) == [1, 2, 3] }
                        }
                        await tracker.wait { $0.count == 4 && Set($0.values) == [1, 2] }
                        await first.leave()
                        await tracker.wait { $0.count == 4 && Set($0.values) == [2] }
                    }
                    await tracker.wait { $0.isEmpty }
                }
                #expect(tracker.overlaps == 0)
            },
            LogBehaviour("never has two workers on a partition, however often members join and leave") { _, log in
                let tracker = WorkerTracker()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for member in 1...5 {
                        group.addTask {
                            for _ in 0..<10 {
                                let membership = try await log.join(group: "g", topic: .changes)
                                try await running(membership, as: member, on: tracker) {
                                    await tracker.wait { $0.values.contains(member) || Set($0.values).count == 4 }
                                }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(tracker.overlaps == 0)
            },
            LogBehaviour("shares the one partition of control, and separates groups and topics") { _, log in
                let trackers = [WorkerTracker(), WorkerTracker(), WorkerTracker()]
                let control = try await log.join(group: "g", topic: .control)
                let changes = try await log.join(group: "g", topic: .changes)
                let others = try await log.join(group: "h", topic: .changes)
                try await running(control, as: 1, on: trackers[0]) {
                    try await running(changes, as: 1, on: trackers[1]) {
                        try await running(others, as: 1, on: trackers[2]) {
                            await trackers[0].wait { $0.count == 1 }
                            await trackers[1].wait { $0.count == 4 }
                            await trackers[2].wait { $0.count == 4 }
                            try await trackers[1].assignment(of: 0, by: 1).commit(3)
                            let committed = try await trackers.asyncMap {
                                try await $0.assignment(of: 0, by: 1).committed()
                            }
                            #expect(committed == [nil, 3, nil])
                            let neighbour = try await trackers[1].assignment(of: 1, by: 1).committed()
                            #expect(neighbour == nil)
                        }
                    }
                }
            },
            LogBehaviour("rethrows a worker's error after every worker has ended, and reassigns the partitions") {
                _, log in
                let tracker = WorkerTracker()
                let failing = try await log.join(group: "g", topic: .changes)
                let isFailing = Gate()
                let task = Task {
                    try await failing.run { assignment in
                        if assignment.partition.partition == 2 {
                            await isFailing.wait()
                            throw WorkerFault()
                        }
                        try await tracker.work(assignment, as: 1)
                    }
                }
                await tracker.wait { $0.count == 3 }
                isFailing.open()
                await #expect(throws: WorkerFault()) { try await task.value }
                await tracker.wait { $0.isEmpty }
                let successor = try await log.join(group: "g", topic: .changes)
                try await running(successor, as: 2, on: tracker) { await tracker.wait { $0.count == 4 } }
                #expect(tracker.overlaps == 0)
            },
            LogBehaviour("leaves a partition idle after its worker returned, and moves it on a rebalance") { _, log in
                let tracker = WorkerTracker()
                let returning = try await log.join(group: "g", topic: .changes)
                let returned = Gate()
                let task = Task {
                    try await returning.run { assignment in
                        if assignment.partition.partition == 1 { return returned.open() }
                        try await tracker.work(assignment, as: 1)
                    }
                }
                await returned.wait()
                await tracker.wait { Set($0.keys) == [0, 2, 3] }
                let second = try await log.join(group: "g", topic: .changes)
                try await running(second, as: 2, on: tracker) { await tracker.wait { $0[1] == 2 && $0.count == 4 } }
                task.cancel()
                try await task.value
                #expect(tracker.overlaps == 0)
            },
            LogBehaviour("runs no worker for a member that has left, and lets it leave twice") { _, log in
                let membership = try await log.join(group: "g", topic: .changes)
                await membership.leave()
                await membership.leave()
                await expectError(.closed) { try await membership.run { _ in Issue.record("a worker ran") } }
                let running = try await log.join(group: "g", topic: .changes)
                let tracker = WorkerTracker()
                let task = Task { try await running.run { try await tracker.work($0, as: 1) } }
                await tracker.wait { $0.count == 4 }
                await running.leave()
                await tracker.wait { $0.isEmpty }
                try await task.value
            },
        ]
    }
}

/// Blocks tasks until it is opened.
final class Gate: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream(of: Void.self) }

    func open() { continuation.finish() }

    func wait() async { for await _ in stream {} }
}

private struct WorkerFault: Error, Equatable {}
