import ChangeLog
import Testing

extension LogBehaviour {
    static var reopening: [LogBehaviour] {
        [
            LogBehaviour("keeps records, offsets, times and committed offsets after a restart") { subject, log in
                let partitions = Topic.allCases.map { TopicPartition($0, 0) }
                for partition in partitions { try await log.append(["a", "b", "c"], to: partition) }
                let before = try await partitions.asyncMap { try await log.records(of: $0, count: 3) }
                let tracker = WorkerTracker()
                let membership = try await log.join(group: "g", topic: .changes)
                try await running(membership, as: 1, on: tracker) {
                    try await tracker.assignment(of: 0, by: 1).commit(2)
                    try await tracker.assignment(of: 3, by: 1).commit(9)
                }
                try await subject.close(log)

                var settings = LogSettings()
                settings.partitions = 7
                let reopened = try await subject.open(settings)
                #expect(reopened.partitionCount == 4)
                let after = try await partitions.asyncMap { try await reopened.records(of: $0, count: 3) }
                #expect(after == before)
                for partition in partitions {
                    try await reopened.append(["d"], to: partition)
                    #expect(try await reopened.values(of: partition, count: 4) == ["a", "b", "c", "d"])
                }
                let again = try await reopened.join(group: "g", topic: .changes)
                try await running(again, as: 2, on: tracker) {
                    let committed = try await (0..<4).asyncMap {
                        try await tracker.assignment(of: $0, by: 2).committed()
                    }
                    #expect(committed == [2, nil, nil, 9])
                }
                try await subject.close(reopened)
            },
            LogBehaviour("uses no offset twice after retention and a restart") { subject, log in
                let partition = TopicPartition(.deadLetters, 3)
                try await log.append(["a", "b", "c"], to: partition)
                let range = try await log.range(of: partition)
                try await subject.removeRecords(of: .deadLetters, before: .max, from: log)
                try await subject.close(log)
                let reopened = try await subject.open(LogSettings())
                #expect(try await reopened.range(of: partition) == LogRange(start: range.end - 1, end: range.end))
                try await reopened.append(["d"], to: partition)
                #expect(try await reopened.values(of: partition, from: range.end - 1, count: 2) == ["c", "d"])
                try await subject.close(reopened)
            },
        ]
    }
}
