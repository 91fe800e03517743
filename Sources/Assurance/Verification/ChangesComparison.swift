import ChangeLog
import Digest
import Ingest
import SyncModel
import SyncWire

/// Recomputes `changes` from what `uploads` still holds, through ingest, and compares.
///
/// A part may be appended again after a crash; as ordering does, this drops what is not above the highest (offset, part)
/// seen of its partition of `uploads` (I2). Both topics are read once and summed up for each pair of partitions; only a
/// pair that differs is read again, part by part.
struct ChangesComparison<Log: ChangeLog>: Sendable {
    let log: Log
    let history: History
    let schemas: SchemaHistory
    let limits: SyncLimits
    let progress: @Sendable (Int) -> Void

    /// From a partition of `uploads` to one of `changes`.
    private struct Lane: Hashable {
        let uploads: Int
        let changes: Int
    }

    /// A part as it should be, or is.
    private struct Part: Hashable {
        let lane: Lane
        let place: UploadProgress
        /// Of key and value.
        let digest: [UInt8]
    }

    /// What one of the topics holds.
    private struct Contents {
        var sums: [Lane: ContentSum] = [:]
        /// The parts of the last record of each partition of `uploads` that reached `changes`, which may be cut short.
        var last: [Int: Set<Part>] = [:]
        /// That record's offset.
        var newest: [Int: Int64] = [:]

        mutating func add(_ part: Part) {
            sums[part.lane, default: ContentSum()].add(part.digest)
        }
    }

    /// How far the partitions of `uploads` are compared.
    private typealias Ranges = [Int: LogRange]

    func run() async throws -> Finding {
        var held: Ranges = [:]
        for partition in 0..<history.partitions {
            held[partition] = try await log.range(of: TopicPartition(.uploads, partition))
        }
        // What the log took meanwhile is left out: its parts may be on their way.
        let found = try await contentsOfChanges(held)
        var ends: Ranges = [:]
        for (partition, range) in held {
            ends[partition] = LogRange(start: range.start, end: (found.newest[partition] ?? range.start - 1) + 1)
        }
        let made: Contents
        do {
            made = try await contentsOfUploads(ends)
        } catch let error as IngestError {
            return .unknown("uploads cannot be read: \(error)")
        }
        var differences = Differences()
        var parts = 0
        let lanes = Set(made.sums.keys).union(found.sums.keys)
        for lane in lanes.sorted(by: { ($0.uploads, $0.changes) < ($1.uploads, $1.changes) }) {
            let (left, right) = (made.sums[lane] ?? ContentSum(), found.sums[lane] ?? ContentSum())
            parts += left.count
            guard left != right, let range = ends[lane.uploads] else { continue }
            try await locate(lane, range, &differences)
        }
        // The newest record may be cut short where the process ended: what it has must be right.
        for (partition, there) in found.last {
            let wanted = made.last[partition] ?? []
            parts += there.count
            for part in there where !wanted.contains(part) {
                differences.add(
                    Difference(
                        words(part.lane, part.place), expected: "what ingest makes of the upload",
                        found: "another part"))
            }
        }
        let text = ends.sorted { $0.key < $1.key }.map { "[\($0.key)] \($0.value.start) to \($0.value.end)" }
            .joined(separator: ", ")
        return differences.finding(equal: "\(parts) parts of uploads \(text)")
    }

    // MARK: Summing up

    private func contentsOfChanges(_ held: Ranges) async throws -> Contents {
        var contents = Contents()
        for partition in 0..<history.partitions {
            try await forEachPart(of: partition, held) { part, _ in
                let uploads = part.lane.uploads
                let newest = contents.newest[uploads] ?? -1
                if part.place.offset > newest {
                    for older in contents.last[uploads] ?? [] { contents.add(older) }
                    contents.last[uploads] = [part]
                    contents.newest[uploads] = part.place.offset
                } else if part.place.offset == newest {
                    contents.last[uploads, default: []].insert(part)
                } else {
                    contents.add(part)
                }
            }
        }
        return contents
    }

    private func contentsOfUploads(_ ends: Ranges) async throws -> Contents {
        var contents = Contents()
        for (partition, range) in ends.sorted(by: { $0.key < $1.key }) {
            try await forEachExpected(of: partition, range) { part, _ in
                if part.place.offset == range.end - 1 {
                    contents.last[partition, default: []].insert(part)
                } else {
                    contents.add(part)
                }
            }
        }
        return contents
    }

    /// The parts in a partition of `changes`, of uploads that are held, each once.
    private func forEachPart(
        of partition: Int, _ held: Ranges, _ body: (Part, LogRecord) throws -> Void
    ) async throws {
        let place = TopicPartition(.changes, partition)
        let range = try await log.range(of: place)
        var seen: [Int: UploadProgress] = [:]
        try await log.forEachRecord(of: place, from: range.start, to: range.end) { records in
            for record in records {
                // The whole message is read by the replay; what cannot be read stops that with an explanation.
                guard let change = Self.read(record) else { continue }
                let uploads = change.upload.partition
                let progress = UploadProgress(offset: change.upload.offset, part: change.part)
                if let before = seen[uploads], progress <= before { continue }
                seen[uploads] = progress
                guard let range = held[uploads], (range.start..<range.end).contains(progress.offset) else { continue }
                let lane = Lane(uploads: uploads, changes: partition)
                try body(Part(lane: lane, place: progress, digest: Self.digest(record.key, record.value)), record)
            }
            progress(records.count)
        }
    }

    /// The parts that ingest makes of a partition of `uploads`.
    private func forEachExpected(
        of partition: Int, _ range: LogRange, _ body: (Part, NewRecord) throws -> Void
    ) async throws {
        var admission = Admission(history: history, limits: limits, maximumRecordSize: log.maximumRecordSize)
        let place = TopicPartition(.uploads, partition)
        try await log.forEachRecord(of: place, from: range.start, to: range.end) { records in
            for record in records {
                let admitted = try admission.admit(record, of: partition, schemas: schemas)
                let parts = admitted.records.filter { $0.destination.topic == .changes }
                for (number, part) in parts.enumerated() {
                    let lane = Lane(uploads: partition, changes: part.destination.partition)
                    let progress = UploadProgress(offset: record.offset, part: number)
                    try body(Part(lane: lane, place: progress, digest: Self.digest(part.key, part.value)), part)
                }
            }
            progress(records.count)
        }
    }

    private static func read(_ record: LogRecord) -> ChangePart? {
        do {
            return try ChangePart(decoding: record.value)
        } catch {
            return nil
        }
    }

    private static func digest(_ key: [UInt8], _ value: [UInt8]) -> [UInt8] {
        var hash = SHA256()
        // Of one length, so that no byte can pass from the key to the value.
        hash.update(SHA256.digest(of: key))
        hash.update(value)
        return hash.finish()
    }

    // MARK: Part by part

    /// Names the first part of a lane that differs: reads both sides again, some of `uploads` at a time.
    private func locate(_ lane: Lane, _ range: LogRange, _ differences: inout Differences) async throws {
        var located = differences
        // Windows bound what is in memory; a lane that differs is read once for each.
        let window: Int64 = 100_000
        for start in stride(from: range.start, to: range.end, by: Int(window)) {
            let part = LogRange(start: start, end: min(start + window, range.end))
            var expected: [UploadProgress: [UInt8]] = [:]
            try await forEachExpected(of: lane.uploads, part) { part, _ in
                if part.lane == lane { expected[part.place] = part.digest }
            }
            let newest = range.end - 1
            try await forEachPart(of: lane.changes, [lane.uploads: part]) { part, record in
                let wanted = expected.removeValue(forKey: part.place)
                guard part.place.offset != newest, wanted != part.digest else { return }
                located.add(
                    Difference(
                        "changes[\(lane.changes)] offset \(record.offset), \(words(part.lane, part.place))",
                        expected: wanted == nil ? "no such part" : "what ingest makes of the upload",
                        found: "another part"))
            }
            for place in expected.keys.sorted() where place.offset != newest {
                located.add(Difference(words(lane, place), expected: "a part", found: "no such part"))
            }
        }
        differences = located
    }

    private func words(_ lane: Lane, _ place: UploadProgress) -> String {
        "part \(place.part) of uploads[\(lane.uploads)] offset \(place.offset) in changes[\(lane.changes)]"
    }
}
