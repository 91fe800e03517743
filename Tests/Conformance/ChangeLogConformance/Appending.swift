import ChangeLog
import Testing

private let uploads = TopicPartition(.uploads, 0)

extension LogBehaviour {
    /// A queue with space for a few records.
    private static var smallQueue: LogSettings {
        var settings = LogSettings()
        settings.queueBytes = 4096
        return settings
    }

    static var appending: [LogBehaviour] {
        [
            LogBehaviour(
                "takes an append that is many times larger than its queue, and others around it", settings: smallQueue
            ) {
                _, log in
                let producer = try await log.producer()
                // More than any log keeps beyond its queue: 12 MB.
                let value = Array(repeating: 7 as UInt8, count: 200_000)
                let records = (0..<60).map { NewRecord(to: uploads, key: [UInt8($0)], value: value) }
                let first = Task.immediate { try await producer.append(records) }
                let second = Task.immediate {
                    try await producer.append([NewRecord(to: uploads, key: [60], value: [])])
                }
                #expect(try await first.value.count == 60)
                #expect(try await second.value.count == 1)
                #expect(try await log.records(of: uploads, count: 61).map(\.key) == (0...60).map { [UInt8($0)] })
                await producer.close()
            },
            LogBehaviour("keeps the order of each partition, with increasing offsets") { _, log in
                let producer = try await log.producer()
                var offsets: [Int: [Int64]] = [:]
                for number in 0..<40 {
                    let partition = number % 4
                    let record = NewRecord(to: TopicPartition(.changes, partition), value: Array("\(number)".utf8))
                    offsets[partition, default: []] += try await producer.append([record])
                }
                for partition in 0..<4 {
                    let records = try await log.records(of: TopicPartition(.changes, partition), count: 10)
                    #expect(records.map(\.offset) == offsets[partition])
                    #expect(zip(records, records.dropFirst()).allSatisfy { $0.offset < $1.offset })
                    let numbers = records.map { String(decoding: $0.value, as: UTF8.self) }
                    #expect(numbers == (0..<10).map { "\($0 * 4 + partition)" })
                }
                await producer.close()
            },
            LogBehaviour("returns the offsets of one append in the order of its records, across partitions") {
                _, log in
                let producer = try await log.producer()
                let destinations: [TopicPartition] = [
                    TopicPartition(.changes, 2), TopicPartition(.deadLetters, 1), TopicPartition(.changes, 2),
                    TopicPartition(.control, 0), TopicPartition(.changes, 0), TopicPartition(.deadLetters, 1),
                ]
                let records = destinations.enumerated().map { NewRecord(to: $1, key: [1], value: [UInt8($0)]) }
                let offsets = try await producer.append(records)
                try #require(offsets.count == destinations.count)
                for (number, destination) in destinations.enumerated() {
                    let stored = try await log.records(of: destination, from: offsets[number], count: 1)
                    #expect(stored.first?.offset == offsets[number])
                    #expect(stored.first?.value == [UInt8(number)])
                }
                await producer.close()
            },
            LogBehaviour("returns keys and values unchanged, empty or of a megabyte") { _, log in
                let large = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
                let sent: [(key: [UInt8], value: [UInt8])] = [
                    ([], [0]), ([0, 255], [0, 0]), (Array("kéy".utf8), large), ([1], [2]),
                ]
                let producer = try await log.producer()
                try await producer.append(sent.map { NewRecord(to: uploads, key: $0.key, value: $0.value) })
                let records = try await log.records(of: uploads, count: sent.count)
                #expect(records.map(\.key) == sent.map(\.key))
                #expect(records.map(\.value) == sent.map(\.value))
                await producer.close()
            },
            LogBehaviour("accepts an empty value, and an append without records") { _, log in
                let producer = try await log.producer()
                #expect(try await producer.append([]) == [])
                try await producer.append([NewRecord(to: uploads, key: [7], value: [])])
                let records = try await log.records(of: uploads, count: 1)
                #expect(records.map(\.value) == [[]])
                #expect(records.map(\.key) == [[7]])
                await producer.close()
            },
            LogBehaviour("assigns each record the log's own time") { _, log in
                let before = WallClock.microseconds()
                try await log.append(["a", "b"], to: uploads)
                let after = WallClock.microseconds()
                // Kafka's times have milliseconds.
                for record in try await log.records(of: uploads, count: 2) {
                    #expect((before - 1000...after).contains(record.time))
                }
            },
            LogBehaviour("resolves a receipt when its records can be read, each time it is awaited") { _, log in
                let producer = try await log.producer()
                let receipt = try await producer.enqueue([NewRecord(to: uploads, value: [1])])
                let offsets = try await receipt.offsets()
                #expect(try await log.range(of: uploads).end > offsets[0])
                #expect(try await log.records(of: uploads, from: offsets[0], count: 1).map(\.value) == [[1]])
                #expect(try await receipt.offsets() == offsets)
                await producer.close()
            },
            LogBehaviour("keeps the order of appends that are not awaited") { _, log in
                let producer = try await log.producer()
                var receipts: [AppendReceipt] = []
                for number in 0..<500 {
                    receipts.append(
                        try await producer.enqueue([NewRecord(to: uploads, value: Array("\(number)".utf8))]))
                }
                var offsets: [Int64] = []
                for receipt in receipts.reversed() { offsets += try await receipt.offsets() }
                let records = try await log.records(of: uploads, count: 500)
                #expect(records.map(\.offset) == offsets.reversed())
                #expect(records.map { String(decoding: $0.value, as: UTF8.self) } == (0..<500).map { "\($0)" })
                await producer.close()
            },
            LogBehaviour("accepts concurrent producers, and keeps the order of each") { _, log in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for producer in 0..<16 {
                        group.addTask {
                            let values = (0..<20).map { "\(producer) \($0)" }
                            try await log.append(values, to: TopicPartition(.uploads, producer % 2))
                        }
                    }
                    try await group.waitForAll()
                }
                for partition in 0..<2 {
                    let values = try await log.values(of: TopicPartition(.uploads, partition), count: 160)
                    for producer in stride(from: partition, to: 16, by: 2) {
                        let own = values.filter { $0.hasPrefix("\(producer) ") }
                        #expect(own == (0..<20).map { "\(producer) \($0)" })
                    }
                }
            },
            LogBehaviour("refuses an append with a record that is too large or of an unknown partition, and continues")
            {
                _, log in
                let producer = try await log.producer()
                let maximum = log.maximumRecordSize
                let fitting = NewRecord(to: uploads, value: [1])
                for (record, code) in [
                    (
                        NewRecord(to: uploads, key: [0], value: Array(repeating: 0, count: maximum)),
                        ChangeLogError.Code.recordTooLarge(maximum: maximum)
                    ),
                    (NewRecord(to: TopicPartition(.uploads, 4), value: []), .unknownPartition),
                    (NewRecord(to: TopicPartition(.uploads, -1), value: []), .unknownPartition),
                    (NewRecord(to: TopicPartition(.control, 1), value: []), .unknownPartition),
                ] {
                    await expectError(code) { _ = try await producer.enqueue([fitting, record]) }
                }
                #expect(try await log.range(of: uploads) == LogRange(start: 0, end: 0))
                try await producer.append([fitting])
                #expect(try await log.records(of: uploads, count: 1).map(\.value) == [[1]])
                await producer.close()
            },
        ]
    }
}
