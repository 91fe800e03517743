import ChangeLog
import Testing

extension LogBehaviour {
    static var reopening: [LogBehaviour] {
        [
            LogBehaviour("keeps records, offsets, times and committed offsets over a restart") { subject, log in
                let places = Topic.allCases.map { TopicPartition($0, 0) }
                for place in places { try await log.append(["a", "b", "c"], to: place) }
                let before = try await places.asyncMap { try await log.records(of: $0, count: 3) }
                let roster = Roster()
                let membership = try await log.join(group: "g", topic: .changes)
                try await running(membership, as: 1, on: roster) {
                    try await roster.assignment(of: 0, by: 1).commit(2)
                    try await roster.assignment(of: 3, by: 1).commit(9)
                }
                try await subject.close(log)

                var settings = LogSettings()
                settings.partitions = 7
                let reopened = try await subject.open(settings)
                #expect(reopened.partitionCount == 4)
                let after = try await places.asyncMap { try await reopened.records(of: $0, count: 3) }
                #expect(after == before)
                for place in places {
                    try await reopened.append(["d"], to: place)
                    #expect(try await reopened.values(of: place, count: 4) == ["a", "b", "c", "d"])
                }
                let again = try await reopened.join(group: "g", topic: .changes)
                try await running(again, as: 2, on: roster) {
                    let committed = try await (0..<4).asyncMap {
                        try await roster.assignment(of: $0, by: 2).committed()
                    }
                    #expect(committed == [2, nil, nil, 9])
                }
                try await subject.close(reopened)
            },
            LogBehaviour("gives no offset twice, though retention took records before a restart") { subject, log in
                let place = TopicPartition(.deadLetters, 3)
                try await log.append(["a", "b", "c"], to: place)
                let range = try await log.range(of: place)
                try await subject.removeRecords(of: .deadLetters, before: .max, from: log)
                try await subject.close(log)
                let reopened = try await subject.open(LogSettings())
                #expect(try await reopened.range(of: place) == LogRange(start: range.end - 1, end: range.end))
                try await reopened.append(["d"], to: place)
                #expect(try await reopened.values(of: place, from: range.end - 1, count: 2) == ["c", "d"])
                try await subject.close(reopened)
            },
        ]
    }
}
