import ChangeLog
import KafkaChangeLog
import SyncModel
import SyncWire
import Testing

/// What the topics of a cluster hold in the end: each message counts once, in order, and whoever repeats one repeats its bytes.
struct LogAudit {
    /// How many records were there before, with the same bytes.
    private(set) var repeats = 0
    /// How many rows the results hold, repeats left out.
    private(set) var rows = 0
    /// The offset behind the newest message of `changes` that has its result, for each partition.
    private(set) var orderedUpTo: [Int64] = []
    private let log: KafkaChangeLog

    /// Reads `changes` and `ordered` of a cluster to their ends.
    static func check(_ cluster: WeirCluster) async throws -> LogAudit {
        let servers = cluster.servers.split(separator: ",").map(String.init)
        let log = try await KafkaChangeLog(KafkaChangeLogConfiguration(servers: servers, topicPrefix: cluster.prefix))
        var audit = LogAudit(log: log)
        let result = await Result.capturing {
            for partition in 0..<cluster.partitions {
                try await audit.checkChanges(partition)
                try await audit.checkOrdered(partition)
            }
        }
        await log.close()
        try result.get()
        return audit
    }

    private init(log: KafkaChangeLog) { self.log = log }

    /// The parts of each partition of `uploads` stand in their order.
    private mutating func checkChanges(_ partition: Int) async throws {
        var newest: [Int: Place] = [:]
        var seen: [Part: [UInt8]] = [:]
        for record in try await records(of: .changes, partition) {
            let part = try ChangePart(decoding: record.value)
            let place = Place(major: part.upload.offset, minor: Int64(part.part))
            let key = Part(source: part.upload.partition, place: place)
            if let first = seen[key] {
                #expect(first == record.value, "changes \(partition) at \(record.offset) repeats other bytes")
                repeats += 1
                continue
            }
            seen[key] = record.value
            if let before = newest[part.upload.partition] {
                #expect(place > before, "changes \(partition) at \(record.offset) is out of order")
            }
            newest[part.upload.partition] = place
        }
    }

    /// Results stand in the order of their messages, their rows in that of their timeStamps.
    private mutating func checkOrdered(_ partition: Int) async throws {
        var newest = Place(major: -1, minor: 0)
        var seen: [Place: [UInt8]] = [:]
        var timeStamp: Int64 = 0
        for record in try await records(of: .ordered, partition) {
            let piece = try OrderedPiece(decoding: record.value)
            let place = Place(major: piece.changesOffset, minor: Int64(piece.piece))
            if let first = seen[place] {
                #expect(first == record.value, "ordered \(partition) at \(record.offset) repeats other bytes")
                repeats += 1
                continue
            }
            seen[place] = record.value
            #expect(place > newest, "ordered \(partition) at \(record.offset) is out of order")
            newest = place
            for row in piece.rows.map(\.row) {
                #expect(row.timeStamp.rawValue > timeStamp, "ordered \(partition) at \(record.offset)")
                timeStamp = row.timeStamp.rawValue
                rows += 1
            }
        }
        orderedUpTo.append(newest.major + 1)
    }

    private func records(of topic: Topic, _ partition: Int) async throws -> [LogRecord] {
        let place = TopicPartition(topic, partition)
        let range = try await log.range(of: place)
        let reader = try await log.reader(of: place, from: range.start)
        var records: [LogRecord] = []
        while (records.last?.offset ?? range.start - 1) < range.end - 1 {
            records += try await reader.next(maximumBytes: 1 << 20)
        }
        await reader.close()
        return records
    }

    /// Where a record stands in the order of what it came from.
    private struct Place: Hashable, Comparable {
        let major: Int64
        let minor: Int64

        static func < (left: Place, right: Place) -> Bool { (left.major, left.minor) < (right.major, right.minor) }
    }

    private struct Part: Hashable {
        let source: Int
        let place: Place
    }
}
