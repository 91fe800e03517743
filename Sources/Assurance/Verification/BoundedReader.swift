import ChangeLog

/// Says that a bounded reader has given everything.
struct EndOfRange: Error {}

/// Reads a partition up to an offset that its log held when asked, where other readers would wait for more.
actor BoundedReader<Base: LogReader>: LogReader {
    /// How much is read at once, in bytes.
    static var readBytes: Int { 1 << 20 }

    private let base: Base
    private var end: Int64
    private var nextOffset: Int64
    /// What was read and stands behind the end.
    private var beyond: [LogRecord] = []
    /// From where on records count as progress: one before it is read to make sure of the place.
    private let countedFrom: Int64
    private let progress: @Sendable (Int) -> Void

    /// - Parameters:
    ///   - end: the offset before which it ends; the partition must hold a record at or behind the one before.
    ///   - countedFrom: the first offset that is progress; `nil`: the first that is read.
    ///   - progress: told how many records were read, each time.
    init(
        _ base: Base, from start: Int64, to end: Int64, countedFrom: Int64? = nil,
        progress: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        self.base = base
        self.end = end
        nextOffset = start
        self.countedFrom = countedFrom ?? start
        self.progress = progress
    }

    /// The next records; throws ``EndOfRange`` where there are none.
    func next(maximumBytes: Int) async throws -> [LogRecord] {
        guard nextOffset < end else { throw EndOfRange() }
        var records = beyond.isEmpty ? try await base.next(maximumBytes: maximumBytes) : beyond
        beyond = []
        if let last = records.last { nextOffset = last.offset + 1 }
        if nextOffset > end {
            beyond = records.filter { $0.offset >= end }
            records.removeLast(beyond.count)
            nextOffset = end
        }
        if records.isEmpty { throw EndOfRange() }
        let counted = records.count { $0.offset >= countedFrom }
        if counted > 0 { progress(counted) }
        return records
    }

    /// Goes on to a later end; the partition must hold a record at or behind the one before it.
    func extend(to later: Int64) { end = max(end, later) }

    func close() async { await base.close() }
}

extension ChangeLog {
    /// Hands the records of a part of a partition to a body, in order, some at a time.
    func forEachRecord(
        of partition: TopicPartition, from start: Int64, to end: Int64, _ body: ([LogRecord]) async throws -> Void
    ) async throws {
        guard start < end else { return }
        let reader = BoundedReader(try await reader(of: partition, from: start), from: start, to: end)
        let result: Result<Void, any Error>
        do {
            while true { try await body(try await reader.next(maximumBytes: BoundedReader<Reader>.readBytes)) }
        } catch is EndOfRange {
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await reader.close()
        try result.get()
    }
}
