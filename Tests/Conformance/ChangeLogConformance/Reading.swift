import ChangeLog
import Testing

private let partition = TopicPartition(.ordered, 1)

extension LogBehaviour {
    static var reading: [LogBehaviour] {
        [
            LogBehaviour("reads from the start, from the middle, and up to a size") { _, log in
                try await log.append((0..<30).map { "\($0)" }, to: partition)
                let range = try await log.range(of: partition)
                #expect(try await log.values(of: partition, from: range.start, count: 30) == (0..<30).map { "\($0)" })
                let all = try await log.records(of: partition, from: range.start, count: 30)
                let middle = all[17].offset
                #expect(try await log.values(of: partition, from: middle, count: 13) == (17..<30).map { "\($0)" })

                let reader = try await log.reader(of: partition, from: range.start)
                #expect(try await reader.next(maximumBytes: 0) == [all[0]])
                #expect(try await reader.next(maximumBytes: 1) == [all[1]])
                // At most two, and fewer if the log has not fetched more yet.
                var rest = all[2...]
                for bound in [all[2].size + 1, all[2].size + all[3].size] {
                    let taken = try await reader.next(maximumBytes: bound)
                    #expect((1...2).contains(taken.count))
                    #expect(taken[...] == rest.prefix(taken.count))
                    rest = rest.dropFirst(taken.count)
                }
                await reader.close()
            },
            LogBehaviour("returns a record that is larger than requested") { _, log in
                let producer = try await log.producer()
                let large = [UInt8](repeating: 9, count: 1 << 20)
                try await producer.append([
                    NewRecord(to: partition, value: large), NewRecord(to: partition, value: [1]),
                ])
                let reader = try await log.reader(of: partition, from: 0)
                #expect(try await reader.next(maximumBytes: 100).map(\.value) == [large])
                #expect(try await reader.next(maximumBytes: 100).map(\.value) == [[1]])
                await reader.close()
                await producer.close()
            },
            LogBehaviour("refuses an offset out of range, and reports the range") { _, log in
                try await log.append(["a", "b"], to: partition)
                let range = try await log.range(of: partition)
                await expectError(.outOfRange(range)) { _ = try await log.reader(of: partition, from: range.end + 1) }
                await expectError(.outOfRange(range)) { _ = try await log.reader(of: partition, from: -1) }
                await expectError(.unknownPartition) {
                    _ = try await log.reader(of: TopicPartition(.ordered, 4), from: 0)
                }
                await expectError(.unknownPartition) { _ = try await log.range(of: TopicPartition(.control, 1)) }
            },
            LogBehaviour("reports an error for records that retention deleted, and keeps the newest record") {
                subject, log in
                let stopped = try await log.reader(of: partition, from: 0)
                var last: Int64 = 0
                // Several records may have the same time.
                repeat {
                    try await log.append(["old"], to: partition)
                    let end = try await log.range(of: partition).end
                    let newest = try await log.records(of: partition, from: end - 1, count: 1)
                    defer { last = newest[0].time }
                    if end > 5, newest[0].time > last { break }
                } while true
                let end = try await log.range(of: partition).end
                try await subject.removeRecords(of: partition.topic, before: .max, from: log)
                let range = try await log.range(of: partition)
                #expect(range == LogRange(start: end - 1, end: end))
                await expectError(.outOfRange(range)) { _ = try await log.reader(of: partition, from: end - 2) }
                // The reader may return what it had fetched, then it must report the deletion.
                var next: Int64 = 0
                await expectError(.outOfRange(range)) {
                    while next < end {
                        for record in try await stopped.next(maximumBytes: 1) {
                            #expect(record.offset == next)
                            next = record.offset + 1
                        }
                    }
                    if next == end {
                        throw ChangeLogError(.outOfRange(range), message: "the reader had fetched everything")
                    }
                }
                #expect(try await log.values(of: partition, from: end - 1, count: 1) == ["old"])
                await stopped.close()
            },
            LogBehaviour("removes only records older than the limit") { subject, log in
                var times: [Int64] = []
                while times.count < 6 {
                    try await log.append(["x"], to: partition)
                    let end = try await log.range(of: partition).end
                    let time = try await log.records(of: partition, from: end - 1, count: 1)[0].time
                    if let last = times.last, time == last {
                        // Not later than the record before: start again after it.
                        try await subject.removeRecords(of: partition.topic, before: .max, from: log)
                        times = []
                    }
                    times.append(time)
                }
                let before = try await log.range(of: partition)
                try await subject.removeRecords(of: partition.topic, before: times[3], from: log)
                #expect(try await log.range(of: partition) == LogRange(start: before.end - 3, end: before.end))
                let left = try await log.records(of: partition, from: before.end - 3, count: 3)
                #expect(left.map(\.time) == Array(times[3...]))
            },
            LogBehaviour("keeps records at or above their partition's floor, however old") { subject, log in
                let other = TopicPartition(.ordered, 2)
                for partition in [partition, other] { try await log.append((0..<10).map { "\($0)" }, to: partition) }
                let (start, end) = (try await log.range(of: partition).start, try await log.range(of: partition).end)
                func remove(_ floors: [Int: Int64]) async throws -> LogRange {
                    try await subject.removeRecords(of: .ordered, before: .max, floors: floors, from: log)
                    return try await log.range(of: partition)
                }
                #expect(try await remove([1: start, 2: start]) == LogRange(start: start, end: end))
                // Each partition has its own floor.
                #expect(try await remove([1: start + 4]) == LogRange(start: start + 4, end: end))
                #expect(try await log.values(of: partition, from: start + 4, count: 6) == (4..<10).map { "\($0)" })
                let rest = try await log.range(of: other)
                #expect(rest.start == rest.end - 1)
                // A lower floor restores nothing, and the newest record stays below any floor.
                #expect(try await remove([1: start + 2]) == LogRange(start: start + 4, end: end))
                #expect(try await remove([1: end + 5]) == LogRange(start: end - 1, end: end))
            },
            LogBehaviour("keeps what a group of the topic has not committed, also before its first commit") {
                subject, log in
                let partition = TopicPartition(.uploads, 0)
                try await log.append((0..<10).map { "\($0)" }, to: partition)
                let tracker = WorkerTracker()
                let first = try await log.join(group: "first", topic: .uploads)
                let second = try await log.join(group: "second", topic: .uploads)
                try await subject.removeRecords(of: .uploads, before: .max, from: log)
                #expect(try await log.range(of: partition).start == 0)
                for (member, offset) in [(first, Int64(7)), (second, 4)] {
                    try await running(member, as: Int(offset), on: tracker) {
                        try await tracker.assignment(of: 0, by: Int(offset)).commit(offset)
                    }
                }
                try await subject.removeRecords(of: .uploads, before: .max, from: log)
                #expect(try await log.range(of: partition).start == 4)
                #expect(try await log.values(of: partition, from: 4, count: 1).first == "4")
            },
            LogBehaviour(
                "keeps everything of a partition of which a named consumer has committed nothing, known or not"
            ) {
                subject, log in
                let (partition, other) = (TopicPartition(.uploads, 0), TopicPartition(.uploads, 1))
                for partition in [partition, other] { try await log.append((0..<10).map { "\($0)" }, to: partition) }
                func remove() async throws -> [LogRange] {
                    try await subject.removeRecords(
                        of: .uploads, before: .max, floors: [:], consumers: ["first"], from: log)
                    return [try await log.range(of: partition), try await log.range(of: other)]
                }
                let full = LogRange(start: 0, end: 10)
                #expect(try await remove() == [full, full])
                let tracker = WorkerTracker()
                try await running(try await log.join(group: "first", topic: .uploads), as: 1, on: tracker) {
                    try await tracker.assignment(of: 0, by: 1).commit(7)
                }
                #expect(try await remove() == [LogRange(start: 7, end: 10), full])
            },
        ]
    }
}
