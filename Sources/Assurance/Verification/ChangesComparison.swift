import ChangeLog
import Digest
import Ingest
import SyncModel
import SyncWire

/// Recomputes `changes` from what `uploads` still holds, through ingest, and compares.
///
/// A crash may repeat parts: like ordering, this skips parts that are not above the highest (offset, part) seen of their
/// partition of `uploads` (I2). Both topics are read once and hashed for each pair of partitions; only a pair that differs
/// is read again, part by part.
struct ChangesComparison<Log: ChangeLog>: Sendable {
    let source: ReplaySource<Log>

    /// From a partition of `uploads` to one of `changes`.
    private struct Lane: Hashable {
        let uploads: Int
        let changes: Int
    }

    private struct Part: Hashable {
        let lane: Lane
        let progress: UploadProgress
        /// Of key and value.
        let digest: [UInt8]
    }

    private struct Contents {
        var sums: [Lane: ContentSum] = [:]
        /// The parts of the last upload of each partition that reached `changes`; some may be missing.
        var last: [Int: Set<Part>] = [:]
        var newest: [Int: Int64] = [:]

        mutating func add(_ part: Part) {
            sums[part.lane, default: ContentSum()].add(part.digest)
        }
    }

    /// The offsets of each partition of `uploads` that are compared.
    private typealias Ranges = [Int: LogRange]

    func run() async throws -> Finding {
        var uploads: Ranges = [:]
        for partition in source.partitions {
            uploads[partition] = try await source.range(.uploads, partition)
        }
        // Later uploads are not compared: their parts may not be in `changes` yet.
        let found = try await contentsOfChanges(uploads)
        var ends: Ranges = [:]
        for (partition, range) in uploads {
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
        // Parts of the last upload may be missing, if the process ended; those that exist must be right.
        for (partition, there) in found.last {
            let wanted = made.last[partition] ?? []
            parts += there.count
            for part in there where !wanted.contains(part) {
                differences.add(
                    Difference(
                        describe(part.lane, part.progress), expected: "the part that ingest writes",
                        found: "a different part"))
            }
        }
        let text = ends.sorted { $0.key < $1.key }.map { "[\($0.key)] \($0.value.start) to \($0.value.end)" }
            .joined(separator: ", ")
        return differences.finding(equal: "\(parts) parts of uploads \(text)")
    }

    // MARK: Hashes

    private func contentsOfChanges(_ held: Ranges) async throws -> Contents {
        var contents = Contents()
        for partition in source.partitions {
            try await forEachPart(of: partition, held) { part, _ in
                let uploads = part.lane.uploads
                let newest = contents.newest[uploads] ?? -1
                if part.progress.offset > newest {
                    for older in contents.last[uploads] ?? [] { contents.add(older) }
                    contents.last[uploads] = [part]
                    contents.newest[uploads] = part.progress.offset
                } else if part.progress.offset == newest {
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
                if part.progress.offset == range.end - 1 {
                    contents.last[partition, default: []].insert(part)
                } else {
                    contents.add(part)
                }
            }
        }
        return contents
    }

    /// Calls a body with the parts in a partition of `changes` that are of compared uploads, each once.
    private func forEachPart(
        of partition: Int, _ held: Ranges, _ body: (Part, LogRecord) throws -> Void
    ) async throws {
        let range = try await source.range(.changes, partition)
        var seen: [Int: UploadProgress] = [:]
        try await source.log.forEachRecord(
            of: TopicPartition(.changes, partition), from: range.start, to: range.end
        ) { records in
            for record in records {
                if source.skipped[.changes, partition, record.offset] != nil { continue }
                // A record that cannot be decoded stops the replay, which reports it.
                guard let change = Self.read(record) else { continue }
                let uploads = change.upload.partition
                let progress = UploadProgress(offset: change.upload.offset, part: change.part)
                if let before = seen[uploads], progress <= before { continue }
                seen[uploads] = progress
                guard let range = held[uploads], (range.start..<range.end).contains(progress.offset) else { continue }
                let lane = Lane(uploads: uploads, changes: partition)
                try body(Part(lane: lane, progress: progress, digest: Self.digest(record.key, record.value)), record)
            }
            source.progress(records.count)
        }
    }

    /// Calls a body with the parts that ingest writes for a partition of `uploads`.
    private func forEachExpected(
        of partition: Int, _ range: LogRange, _ body: (Part, NewRecord) throws -> Void
    ) async throws {
        var admission = Admission(
            history: source.history)
        try await source.log.forEachRecord(
            of: TopicPartition(.uploads, partition), from: range.start, to: range.end
        ) { records in
            for record in records {
                let admitted = try admission.admit(
                    record, of: partition, schemas: source.schemas, leavingOut: source.skipped)
                let parts = admitted.records.filter { $0.destination.topic == .changes }
                for (number, part) in parts.enumerated() {
                    let lane = Lane(uploads: partition, changes: part.destination.partition)
                    let progress = UploadProgress(offset: record.offset, part: number)
                    try body(Part(lane: lane, progress: progress, digest: Self.digest(part.key, part.value)), part)
                }
            }
            source.progress(records.count)
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
        // The hash of the key has a fixed length, so that key and value stay apart.
        hash.update(SHA256.digest(of: key))
        hash.update(value)
        return hash.finish()
    }

    // MARK: Part by part

    /// Finds the parts of a lane that differ: reads both sides again, some of `uploads` at a time.
    private func locate(_ lane: Lane, _ range: LogRange, _ differences: inout Differences) async throws {
        var located = differences
        // Bounds the memory; `changes` is read again for each window.
        let window: Int64 = 100_000
        for start in stride(from: range.start, to: range.end, by: Int(window)) {
            let part = LogRange(start: start, end: min(start + window, range.end))
            var expected: [UploadProgress: [UInt8]] = [:]
            try await forEachExpected(of: lane.uploads, part) { part, _ in
                if part.lane == lane { expected[part.progress] = part.digest }
            }
            let newest = range.end - 1
            try await forEachPart(of: lane.changes, [lane.uploads: part]) { part, record in
                let wanted = expected.removeValue(forKey: part.progress)
                guard part.progress.offset != newest, wanted != part.digest else { return }
                located.add(
                    Difference(
                        "changes[\(lane.changes)] offset \(record.offset), \(describe(part.lane, part.progress))",
                        expected: wanted == nil ? "no such part" : "the part that ingest writes",
                        found: "a different part"))
            }
            for progress in expected.keys.sorted() where progress.offset != newest {
                located.add(Difference(describe(lane, progress), expected: "a part", found: "no such part"))
            }
        }
        differences = located
    }

    private func describe(_ lane: Lane, _ progress: UploadProgress) -> String {
        "part \(progress.part) of uploads[\(lane.uploads)] offset \(progress.offset) in changes[\(lane.changes)]"
    }
}
