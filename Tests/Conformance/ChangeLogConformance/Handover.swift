import ChangeLog
import Testing

extension LogBehaviour {
    static var handover: [LogBehaviour] {
        [
            LogBehaviour("ends a worker before the next begins, which reads the last committed offset") { _, log in
                let tracker = WorkerTracker()
                let first = try await log.join(group: "g", topic: .changes)
                let task = Task {
                    try await first.run { assignment in
                        // A cancelled worker may still commit: it has the partition until it returns.
                        try await tracker.work(assignment, as: 1) { ending in
                            try await ending.commit(Int64(ending.partition.partition + 10))
                        }
                    }
                }
                await tracker.wait { $0.count == 4 }
                let second = try await log.join(group: "g", topic: .changes)
                try await running(second, as: 2, on: tracker) {
                    await tracker.wait { $0.count == 4 && Set($0.values) == [1, 2] }
                    task.cancel()
                    try await task.value
                    await tracker.wait { $0.count == 4 && Set($0.values) == [2] }
                    for partition in 0..<4 {
                        let committed = try await tracker.assignment(of: partition, by: 2).committed()
                        #expect(committed == Int64(partition + 10))
                    }
                }
                #expect(tracker.overlaps == 0)
            },
            LogBehaviour("refuses the commit of a worker whose partition was reassigned") { _, log in
                let tracker = WorkerTracker()
                let first = try await log.join(group: "g", topic: .changes)
                let second = try await log.join(group: "g", topic: .changes)
                try await running(first, as: 1, on: tracker) {
                    await tracker.wait { $0.count == 4 }
                    let old = await (0..<4).asyncMap { await tracker.assignment(of: $0, by: 1) }
                    for assignment in old { try await assignment.commit(5) }
                    try await running(second, as: 2, on: tracker) {
                        await tracker.wait { $0.count == 4 && Set($0.values) == [1, 2] }
                        for partition in 0..<4 {
                            if tracker.isWorked(partition, by: 2) {
                                await expectError(.fenced) { try await old[partition].commit(99) }
                                let committed = try await tracker.assignment(of: partition, by: 2).committed()
                                #expect(committed == 5)
                            } else {
                                try await old[partition].commit(6)
                            }
                        }
                    }
                    // The same member has the partitions again, but the old assignments stay invalid.
                    await tracker.wait { $0.count == 4 && Set($0.values) == [1] }
                    var fenced = 0
                    for partition in 0..<4 {
                        do {
                            try await old[partition].commit(6)
                        } catch let error as ChangeLogError {
                            #expect(error.code == .fenced)
                            fenced += 1
                        }
                    }
                    #expect((1...3).contains(fenced))
                }
                await expectError(.fenced) { try await tracker.lastAssignment(of: 0).commit(7) }
            },
            LogBehaviour("ends a run by cancellation without an error, after its workers") { _, log in
                let tracker = WorkerTracker()
                let membership = try await log.join(group: "g", topic: .changes)
                try await running(membership, as: 1, on: tracker) { await tracker.wait { $0.count == 4 } }
                await tracker.wait { $0.isEmpty }
            },
        ]
    }
}
