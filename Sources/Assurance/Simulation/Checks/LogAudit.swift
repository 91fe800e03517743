import ChangeLog
import MemoryChangeLog
import SyncModel
import SyncWire

/// Reads the three topics as they grow and compares them: each upload reaches `changes` once and in order, and has one result
/// in `ordered`, which repeats have the same bytes as.
final class LogAudit: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    struct Upload {
        let batch: ChangeBatch
        let logTime: Int64
    }

    private struct PartID: Hashable {
        let upload: UploadReference
        let part: Int
    }

    private struct PieceName: Hashable {
        let changesOffset: Int64
        let piece: Int
    }

    private struct Partition {
        var uploads: [Upload] = []
        var changesEnd: Int64 = 0
        /// The parts in order, without repeats.
        var fresh: [(offset: Int64, part: ChangePart)] = []
        var highest: [Int: UploadProgress] = [:]
        var orderedEnd: Int64 = 0
        /// How many of `fresh` have a whole result.
        var decided = 0
        /// The offsets in `ordered` of the results of the fresh parts, where each is first.
        var resultStarts: [Int64] = []
        var joining: OrderedPiece?
        var pieces: [PieceName: [UInt8]] = [:]
        /// How many of `uploads` are known to have all their parts.
        var required = 0
    }

    private let world: World
    private var partitions: [Partition]
    private var parts: [PartID: [UInt8]] = [:]
    let model: OrderingModel
    let admission: AdmissionModel

    init(_ world: World) {
        self.world = world
        partitions = Array(repeating: Partition(), count: world.scenario.partitions)
        model = OrderingModel(world)
        admission = AdmissionModel(world)
    }

    func catchUp() {
        for partition in partitions.indices {
            for record in world.log.records(
                of: TopicPartition(.uploads, partition), from: Int64(partitions[partition].uploads.count))
            { addUpload(record, partition) }
        }
        for partition in partitions.indices {
            for record in world.log.records(
                of: TopicPartition(.changes, partition), from: partitions[partition].changesEnd)
            { addPart(record, partition) }
            for record in world.log.records(
                of: TopicPartition(.ordered, partition), from: partitions[partition].orderedEnd)
            { addPiece(record, partition) }
        }
    }

    private func addUpload(_ record: LogRecord, _ partition: Int) {
        guard let batch = decode(record, { try ChangeBatch(decoding: $0) }) else { return }
        partitions[partition].uploads.append(Upload(batch: batch, logTime: record.time))
        world.record(
            "uploads[\(partition)] \(record.offset): \(batch.device.knowledgeID) of \(batch.device.caller), batch "
                + "\(batch.batch.map(String.init) ?? "-")")
    }

    private func addPart(_ record: LogRecord, _ partition: Int) {
        partitions[partition].changesEnd = record.offset + 1
        guard let part = decode(record, { try ChangePart(decoding: $0) }) else { return }
        let id = PartID(upload: part.upload, part: part.part)
        let uploads = partitions[part.upload.partition].uploads
        guard part.upload.offset < uploads.count else {
            return world.fail(.nothingLost, "changes[\(partition)] \(record.offset) comes from no upload")
        }
        let progress = UploadProgress(offset: part.upload.offset, part: part.part)
        if let highest = partitions[partition].highest[part.upload.partition], progress <= highest {
            guard let first = parts[id] else {
                return world.fail(
                    .nothingLost,
                    "part \(part.part) of uploads[\(part.upload.partition)] \(part.upload.offset) follows a later one, "
                        + "and is dropped")
            }
            if first != record.value {
                world.fail(.sameBytes, "changes[\(partition)] \(record.offset) repeats a part with other bytes")
            }
            return
        }
        let upload = uploads[Int(part.upload.offset)]
        if part.logTime != upload.logTime || part.device != upload.batch.device || part.batch != upload.batch.batch {
            world.fail(.nothingLost, "changes[\(partition)] \(record.offset) differs from its upload")
        }
        if !part.hasOtherEpoch { admission.check(part, of: upload.batch) }
        parts[id] = record.value
        partitions[partition].highest[part.upload.partition] = progress
        partitions[partition].fresh.append((record.offset, part))
        world.record(
            "changes[\(partition)] \(record.offset): part \(part.part) of uploads[\(part.upload.partition)] "
                + "\(part.upload.offset), \(part.changes.count) changes of \(part.owner)")
    }

    private func addPiece(_ record: LogRecord, _ partition: Int) {
        partitions[partition].orderedEnd = record.offset + 1
        guard let piece = decode(record, { try OrderedPiece(decoding: $0) }) else { return }
        let name = PieceName(changesOffset: piece.changesOffset, piece: piece.piece)
        let item = "ordered[\(partition)] \(record.offset)"
        if let first = partitions[partition].pieces[name] {
            if first != record.value { world.fail(.sameBytes, "\(item) repeats a result with other bytes") }
            return
        }
        let decided = partitions[partition].decided
        guard decided < partitions[partition].fresh.count else {
            return world.fail(.appliedOnce, "\(item) is the result of nothing new in changes")
        }
        let next = partitions[partition].fresh[decided]
        guard piece.changesOffset == next.offset else {
            let invariant: Violation.Invariant = piece.changesOffset > next.offset ? .nothingLost : .appliedOnce
            return world.fail(
                invariant, "\(item) is the result of changes \(piece.changesOffset), not of \(next.offset)")
        }
        guard piece.piece == (partitions[partition].joining.map { $0.piece + 1 } ?? 0) else {
            return world.fail(.nothingLost, "\(item): a piece of a result is missing before it")
        }
        partitions[partition].pieces[name] = record.value
        // Streams have the rows of a piece before the result's last piece is in the log.
        world.streams.add(piece.rows.map(\.row))
        var joined = partitions[partition].joining ?? piece
        if partitions[partition].joining == nil {
            partitions[partition].resultStarts.append(record.offset)
        } else {
            joined.rows += piece.rows
            joined.results += piece.results
            joined.piece = piece.piece
        }
        partitions[partition].joining = joined
        guard piece.isLast else { return }
        partitions[partition].joining = nil
        partitions[partition].decided += 1
        world.record(
            "\(item): \(joined.verdict), \(joined.rows.map(\.row.timeStamp)) of changes \(piece.changesOffset)")
        model.check(joined, of: next.part, partition)
    }

    private func decode<Message>(_ record: LogRecord, _ read: ([UInt8]) throws -> Message) -> Message? {
        do {
            return try read(record.value)
        } catch {
            world.fail(.nothingLost, "a record cannot be read: \(error)")
            return nil
        }
    }

    // MARK: Queries

    func holds(_ changes: [UInt8], batch: Int64?, of device: Device, _ partition: Int) -> Bool {
        partitions[partition].uploads.contains {
            $0.batch.batch == batch && $0.batch.device == device && $0.batch.changes == changes
        }
    }

    /// Checks that every part of the uploads before an offset is in `changes`.
    func requireParts(before offset: Int64, of partition: Int) {
        guard partitions[partition].required < offset else { return }
        for number in partitions[partition].required..<Int(offset) {
            let upload = UploadReference(partition: partition, offset: Int64(number))
            let own = PartID(upload: upload, part: 0)
            guard let value = parts[own] else {
                return world.fail(.nothingLost, "uploads[\(partition)] \(number) is committed and not in changes")
            }
            // Parsed again: this runs for committed offsets alone.
            let summary: BatchSummary?
            do {
                summary = try ChangePart(decoding: value).summary
            } catch {
                return world.fail(.nothingLost, "part 0 of uploads[\(partition)] \(number) cannot be read: \(error)")
            }
            guard let summary else { continue }
            for other in summary.otherOwners.indices where parts[PartID(upload: upload, part: other + 1)] == nil {
                return world.fail(
                    .nothingLost,
                    "uploads[\(partition)] \(number) is committed, and its part \(other + 1) is not in changes")
            }
            partitions[partition].required = number + 1
        }
    }

    /// Whether `ordered` has the whole results of the parts before an offset of `changes`.
    func hasResults(before offset: Int64, of partition: Int) -> Bool {
        partitions[partition].fresh.count { $0.offset < offset } <= partitions[partition].decided
    }

    /// Where in `ordered` the results of the parts from an offset of `changes` on begin; `nil` where there are none.
    func resultsStart(from offset: Int64, of partition: Int) -> Int64? {
        let count = partitions[partition].fresh.count { $0.offset < offset }
        let starts = partitions[partition].resultStarts
        return count < starts.count ? starts[count] : nil
    }

    func orderedEnd(of partition: Int) -> Int64 { partitions[partition].orderedEnd }

    func uploadCount(of partition: Int) -> Int { partitions[partition].uploads.count }

    /// Whether every upload of a partition has its part 0 in `changes`.
    func isAdmitted(_ partition: Int) -> Bool {
        partitions[partition].uploads.indices.allSatisfy {
            parts[PartID(upload: UploadReference(partition: partition, offset: Int64($0)), part: 0)] != nil
        }
    }

    /// Whether every part in a partition of `changes` has its result.
    func isDecided(_ partition: Int) -> Bool { partitions[partition].decided == partitions[partition].fresh.count }

    /// The bytes of a piece in `ordered`, for comparison with a replay.
    func piece(_ piece: OrderedPiece, of partition: Int) -> [UInt8]? {
        partitions[partition].pieces[PieceName(changesOffset: piece.changesOffset, piece: piece.piece)]
    }

    /// How many pieces the results of the parts before an offset have.
    func pieceCount(of partition: Int, before offset: Int64) -> Int {
        partitions[partition].pieces.keys.count { $0.changesOffset < offset }
    }
}
