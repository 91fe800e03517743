import ChangeLog
import Digest
import SyncModel
import SyncWire

/// Checks `changes` and `ordered` record by record: they are in order, and a repeated record has the same bytes.
///
/// The records of a partition are passed in the order of their offsets. Findings are texts for people.
package struct TopicAudit {
    /// How many records repeat an earlier one.
    package private(set) var repeats = 0
    /// How many rows the results hold, without repeats.
    package private(set) var rows = 0
    /// For each partition the offset after the newest part of `changes` that has a result.
    package private(set) var orderedUpTo: [Int: Int64] = [:]
    /// What is wrong.
    package private(set) var findings: [String] = []

    private var changes: [Int: ChangesPartition] = [:]
    private var ordered: [Int: OrderedPartition] = [:]

    package init() {}

    /// Checks a record of `changes`.
    ///
    /// - Returns: its part; `nil` if the record repeats an earlier one.
    package mutating func checkChanges(_ record: LogRecord, _ partition: Int) throws -> ChangePart? {
        let part = try ChangePart(decoding: record.value)
        let position = SourcePosition(major: part.upload.offset, minor: Int64(part.part))
        let key = PartKey(source: part.upload.partition, position: position)
        var state = changes.removeValue(forKey: partition) ?? ChangesPartition()
        defer { changes[partition] = state }
        let hash = Self.hash(record.value)
        if let first = state.seen[key] {
            if first != hash { findings.append("changes \(partition) at \(record.offset) repeats other bytes") }
            repeats += 1
            return nil
        }
        state.seen[key] = hash
        if let before = state.newest[part.upload.partition], position <= before {
            findings.append("changes \(partition) at \(record.offset) is out of order")
        }
        state.newest[part.upload.partition] = position
        return part
    }

    /// Checks a record of `ordered`: results are in the order of their parts, rows in the order of their timeStamps.
    ///
    /// - Returns: its piece; `nil` if the record repeats an earlier one.
    package mutating func checkOrdered(_ record: LogRecord, _ partition: Int) throws -> OrderedPiece? {
        let piece = try OrderedPiece(decoding: record.value)
        let position = SourcePosition(major: piece.changesOffset, minor: Int64(piece.piece))
        var state = ordered.removeValue(forKey: partition) ?? OrderedPartition()
        defer {
            orderedUpTo[partition] = state.newest.major + 1
            ordered[partition] = state
        }
        let hash = Self.hash(record.value)
        if let first = state.seen[position] {
            if first != hash { findings.append("ordered \(partition) at \(record.offset) repeats other bytes") }
            repeats += 1
            return nil
        }
        state.seen[position] = hash
        if position <= state.newest { findings.append("ordered \(partition) at \(record.offset) is out of order") }
        state.newest = position
        for row in piece.rows.map(\.row) {
            if row.timeStamp.rawValue <= state.timeStamp {
                findings.append(
                    "ordered \(partition) at \(record.offset): the timeStamp \(row.timeStamp) of row \(row.key.id) of "
                        + "\(row.key.owner) is not above \(state.timeStamp)")
            }
            state.timeStamp = row.timeStamp.rawValue
            rows += 1
        }
        return piece
    }

    private static func hash(_ bytes: [UInt8]) -> [UInt8] {
        var digest = SHA256()
        digest.update(bytes)
        return Array(digest.finish().prefix(16))
    }

    private struct ChangesPartition {
        var newest: [Int: SourcePosition] = [:]
        /// The beginning of each record's SHA-256.
        var seen: [PartKey: [UInt8]] = [:]
    }

    private struct OrderedPartition {
        var newest = SourcePosition(major: -1, minor: 0)
        var seen: [SourcePosition: [UInt8]] = [:]
        var timeStamp: Int64 = 0
    }

    /// The position of a record's source.
    private struct SourcePosition: Hashable, Comparable {
        let major: Int64
        let minor: Int64

        static func < (left: SourcePosition, right: SourcePosition) -> Bool {
            (left.major, left.minor) < (right.major, right.minor)
        }
    }

    private struct PartKey: Hashable {
        let source: Int
        let position: SourcePosition
    }
}

extension TopicAudit {
    /// Reads the partitions of `changes` and `ordered` of a log to the ends that they have now, and checks every record.
    ///
    /// - Parameters:
    ///   - onPart: gets each part once.
    ///   - onPiece: gets each piece of a result once, with its partition.
    package static func read(
        _ log: some ChangeLog, partitions: Int, onPart: (ChangePart) -> Void = { _ in },
        onPiece: (OrderedPiece, Int) -> Void = { _, _ in }
    ) async throws -> TopicAudit {
        var audit = TopicAudit()
        for partition in 0..<partitions {
            try await records(of: TopicPartition(.changes, partition), log) { record in
                if let part = try audit.checkChanges(record, partition) { onPart(part) }
            }
            try await records(of: TopicPartition(.ordered, partition), log) { record in
                if let piece = try audit.checkOrdered(record, partition) { onPiece(piece, partition) }
            }
        }
        return audit
    }

    private static func records(
        of partition: TopicPartition, _ log: some ChangeLog, _ body: (LogRecord) throws -> Void
    ) async throws {
        let range = try await log.range(of: partition)
        let reader = try await log.reader(of: partition, from: range.start)
        var last = range.start - 1
        while last < range.end - 1 {
            for record in try await reader.next(maximumBytes: 1 << 20) {
                try body(record)
                last = record.offset
            }
        }
        await reader.close()
    }
}
