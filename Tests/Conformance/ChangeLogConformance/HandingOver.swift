import ChangeLog
import Testing

extension LogBehaviour {
    static var handingOver: [LogBehaviour] {
        [
            LogBehaviour("ends a worker before the next begins, which finds what the first committed last") { _, log in
                let roster = Roster()
                let first = try await log.join(group: "g", topic: .changes)
                let task = Task {
                    try await first.run { assignment in
                        // Cancelled, the worker may still commit: the partition is its own until it returns.
                        try await roster.work(assignment, as: 1) { ending in
                            try await ending.commit(Int64(ending.partition.partition + 10))
                        }
                    }
                }
                await roster.wait { $0.count == 4 }
                let second = try await log.join(group: "g", topic: .changes)
                try await running(second, as: 2, on: roster) {
                    await roster.wait { $0.count == 4 && Set($0.values) == [1, 2] }
                    task.cancel()
                    try await task.value
                    await roster.wait { $0.count == 4 && Set($0.values) == [2] }
                    for partition in 0..<4 {
                        let committed = try await roster.assignment(of: partition, by: 2).committed()
                        #expect(committed == Int64(partition + 10))
                    }
                }
                #expect(roster.overlaps == 0)
            },
            LogBehaviour("refuses the commit of a worker whose partition was given on") { _, log in
                let roster = Roster()
                let first = try await log.join(group: "g", topic: .changes)
                let second = try await log.join(group: "g", topic: .changes)
                try await running(first, as: 1, on: roster) {
                    await roster.wait { $0.count == 4 }
                    let old = await (0..<4).asyncMap { await roster.assignment(of: $0, by: 1) }
                    for assignment in old { try await assignment.commit(5) }
                    try await running(second, as: 2, on: roster) {
                        await roster.wait { $0.count == 4 && Set($0.values) == [1, 2] }
                        for partition in 0..<4 {
                            if roster.isWorked(partition, by: 2) {
                                await expectError(.fenced) { try await old[partition].commit(99) }
                                let committed = try await roster.assignment(of: partition, by: 2).committed()
                                #expect(committed == 5)
                            } else {
                                try await old[partition].commit(6)
                            }
                        }
                    }
                    // The same member has it again; its old assignment is old all the same.
                    await roster.wait { $0.count == 4 && Set($0.values) == [1] }
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
                await expectError(.fenced) { try await roster.lastAssignment(of: 0).commit(7) }
            },
            LogBehaviour("ends a run by cancellation without an error, its workers first") { _, log in
                let roster = Roster()
                let membership = try await log.join(group: "g", topic: .changes)
                try await running(membership, as: 1, on: roster) { await roster.wait { $0.count == 4 } }
                await roster.wait { $0.isEmpty }
            },
        ]
    }
}
