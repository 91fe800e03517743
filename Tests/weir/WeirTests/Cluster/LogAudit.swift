import AsyncPrimitives
import ChangeLog
import KafkaChangeLog
import SyncModel
import SyncWire
import Testing

/// Checks the topics of a cluster at the end: records are in order, and a repeated record has the same bytes.
struct LogAudit {
    /// How many records repeat an earlier one.
    private(set) var repeats = 0
    /// How many rows the results hold, without repeats.
    private(set) var rows = 0
    /// For each partition the offset after the newest part of `changes` that has a result.
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

    /// The parts of each partition of `uploads` are in order.
    private mutating func checkChanges(_ partition: Int) async throws {
        var newest: [Int: SourcePosition] = [:]
        var seen: [Part: [UInt8]] = [:]
        for record in try await records(of: .changes, partition) {
            let part = try ChangePart(decoding: record.value)
            let position = SourcePosition(major: part.upload.offset, minor: Int64(part.part))
            let key = Part(source: part.upload.partition, position: position)
            if let first = seen[key] {
                #expect(first == record.value, "changes \(partition) at \(record.offset) repeats other bytes")
                repeats += 1
                continue
            }
            seen[key] = record.value
            if let before = newest[part.upload.partition] {
                #expect(position > before, "changes \(partition) at \(record.offset) is out of order")
            }
            newest[part.upload.partition] = position
        }
    }

    /// Results are in the order of their parts, rows in the order of their timeStamps.
    private mutating func checkOrdered(_ partition: Int) async throws {
        var newest = SourcePosition(major: -1, minor: 0)
        var seen: [SourcePosition: [UInt8]] = [:]
        var timeStamp: Int64 = 0
        for record in try await records(of: .ordered, partition) {
            let piece = try OrderedPiece(decoding: record.value)
            let position = SourcePosition(major: piece.changesOffset, minor: Int64(piece.piece))
            if let first = seen[position] {
                #expect(first == record.value, "ordered \(partition) at \(record.offset) repeats other bytes")
                repeats += 1
                continue
            }
            seen[position] = record.value
            #expect(position > newest, "ordered \(partition) at \(record.offset) is out of order")
            newest = position
            for row in piece.rows.map(\.row) {
                #expect(row.timeStamp.rawValue > timeStamp, "ordered \(partition) at \(record.offset)")
                timeStamp = row.timeStamp.rawValue
                rows += 1
            }
        }
        orderedUpTo.append(newest.major + 1)
    }

    private func records(of topic: Topic, _ partition: Int) async throws -> [LogRecord] {
        let partition = TopicPartition(topic, partition)
        let range = try await log.range(of: partition)
        let reader = try await log.reader(of: partition, from: range.start)
        var records: [LogRecord] = []
        while (records.last?.offset ?? range.start - 1) < range.end - 1 {
            records += try await reader.next(maximumBytes: 1 << 20)
        }
        await reader.close()
        return records
    }

    /// The position of a record's source.
    private struct SourcePosition: Hashable, Comparable {
        let major: Int64
        let minor: Int64

        static func < (left: SourcePosition, right: SourcePosition) -> Bool {
            (left.major, left.minor) < (right.major, right.minor)
        }
    }

    private struct Part: Hashable {
        let source: Int
        let position: SourcePosition
    }
}
