import ChangeLog

/// A bounded reader is at its end.
struct EndOfRange: Error {}

/// Reads a partition up to an offset and then ends, where other readers wait.
actor BoundedReader<Base: LogReader>: LogReader {
    /// Bytes of one read.
    static var readBytes: Int { 1 << 20 }

    private let base: Base
    private var end: Int64
    private var nextOffset: Int64
    /// Records that were read and are after the end.
    private var beyond: [LogRecord] = []
    /// The first offset that counts as progress: ordering reads the record before it to check the position.
    private let countedFrom: Int64
    private let progress: @Sendable (Int) -> Void

    /// - Parameters:
    ///   - end: the reader ends before it; the partition must have a record at `end - 1` or later.
    ///   - countedFrom: the first offset that counts as progress; `nil`: `start`.
    ///   - progress: called with the number of records of each read.
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

    /// Throws ``EndOfRange`` at the end.
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

    /// Moves the end; the partition must have a record at `later - 1` or later.
    func extend(to later: Int64) { end = max(end, later) }

    func close() async { await base.close() }
}

extension ChangeLog {
    /// Calls a body with the records of a range of offsets, in order, some at a time.
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
