import ChangeLog
import SyncModel
import SyncWire

/// Compares what ordering would publish of one partition with `ordered`, record by record.
///
/// A worker that took over repeats results (I5): like every reader, this skips pieces that are not above the last one seen
/// (I2). What retention has removed, or removes meanwhile, is not compared.
actor OrderedComparison<Log: ChangeLog> {
    /// The order of pieces: by the offset of their record in `changes`, then by number.
    private struct PieceID: Comparable {
        let changesOffset: Int64
        let piece: Int

        static func < (left: PieceID, right: PieceID) -> Bool {
            (left.changesOffset, left.piece) < (right.changesOffset, right.piece)
        }
    }

    private let log: Log
    private let topic: TopicPartition
    private let schemas: SchemaHistory
    private let first: Int64
    private var range: LogRange
    private var reader: BoundedReader<Log.Reader>
    /// Records that were read and not compared yet.
    private var ahead: ArraySlice<LogRecord> = []
    private var isAtEnd = false
    /// The last piece that was no repeat.
    private var last: PieceID?
    /// Whether retention removed the records before the next, so that a result may be missing.
    private var isAfterRemoved: Bool
    private var compared = 0
    private var removed = 0
    private var repeated = 0
    private var differences = Differences()

    /// - Parameter first: the offset in `changes` of the first result to compare. Earlier results are skipped wherever they
    ///   are: a worker that took over may have repeated them after later ones.
    init(_ log: Log, partition: Int, schemas: SchemaHistory, from first: Int64) async throws(ChangeLogError) {
        let topic = TopicPartition(.ordered, partition)
        let (range, reader) = try await Self.open(log, topic)
        self.log = log
        self.schemas = schemas
        self.first = first
        self.range = range
        self.reader = reader
        self.topic = topic
        isAfterRemoved = range.start > 0
        last = first > 0 ? PieceID(changesOffset: first - 1, piece: .max) : nil
    }

    /// Opens a reader at the start of the partition.
    ///
    /// - Parameter end: the end of the range; `nil`: that of the partition.
    private static func open(
        _ log: Log, _ topic: TopicPartition, to end: Int64? = nil
    ) async throws(ChangeLogError) -> (LogRange, BoundedReader<Log.Reader>) {
        while true {
            let held = try await log.range(of: topic)
            let range = LogRange(start: held.start, end: max(end ?? held.end, held.start))
            do throws(ChangeLogError) {
                let reader = try await log.reader(of: topic, from: range.start)
                return (range, BoundedReader(reader, from: range.start, to: range.end))
            } catch {
                // Retention removed records between the two calls.
                guard error.isOutOfRange else { throw error }
            }
        }
    }

    /// Reads the end of `ordered` again, before later results are compared.
    func extend() async throws(ChangeLogError) {
        let end = try await log.range(of: topic).end
        guard end > range.end else { return }
        range = LogRange(start: range.start, end: end)
        await reader.extend(to: end)
        isAtEnd = false
    }

    var finding: Finding {
        var text = "\(compared) records up to offset \(range.end)"
        if repeated > 0 { text += ", \(repeated) repeated" }
        if removed > 0 { text += "; \(removed) older ones were removed by retention" }
        return differences.finding(equal: text)
    }

    /// The offset in `ordered` of a record that ordering publishes; where it is missing, the offset that it would have, and
    /// -1 where retention removed it: a stream that is rebuilt from tables at such a position could not resume.
    func offset(of expected: NewRecord) async throws(ChangeLogError) -> Int64 {
        while let found = try await peek() {
            if found.value == expected.value, found.key == expected.key {
                take(Self.piece(in: found.value))
                compared += 1
                return found.offset
            }
            let wanted = Self.piece(in: expected.value)
            guard let wanted else { preconditionFailure("ordering publishes pieces") }
            guard let met = Self.piece(in: found.value) else {
                ahead.removeFirst()
                differences.add(unreadable(found))
                continue
            }
            if let last, met <= last {
                skipRepeat(met)
            } else if met < wanted {
                take(met)
                differences.add(extra(found))
            } else if met == wanted {
                take(met)
                compared += 1
                differences.add(altered(expected, found))
                return found.offset
            } else {
                return miss(expected, before: found.offset)
            }
        }
        return miss(expected, before: range.end)
    }

    private func take(_ piece: PieceID?) {
        ahead.removeFirst()
        last = piece
        isAfterRemoved = false
    }

    /// Skips a repeat, or a record that is not compared.
    private func skipRepeat(_ piece: PieceID) {
        ahead.removeFirst()
        if piece.changesOffset >= first { repeated += 1 }
    }

    /// The offset of the next piece that is no repeat: the highest that the tables' position may name.
    func nextNewOffset() async throws -> Int64 {
        while let found = try await peek() {
            guard let last, let met = Self.piece(in: found.value), met <= last else { return found.offset }
            skipRepeat(met)
        }
        return range.end
    }

    /// Checks the remaining records: there must be no other result of a record before `end`, nor of one from `changesEnd` on.
    ///
    /// - Parameters:
    ///   - end: the offset in `changes` up to which results were compared.
    ///   - changesEnd: the end of `changes`.
    func finish(at end: Int64, changesEnd: Int64) async throws {
        while let found = try await peek() {
            guard let met = Self.piece(in: found.value) else {
                ahead.removeFirst()
                differences.add(unreadable(found))
                continue
            }
            if let last, met <= last {
                skipRepeat(met)
                continue
            }
            take(met)
            if met.changesOffset < end || met.changesOffset >= changesEnd { differences.add(extra(found)) }
        }
        await reader.close()
    }

    // MARK: Reading

    private func peek() async throws(ChangeLogError) -> LogRecord? {
        while ahead.isEmpty, !isAtEnd {
            do {
                ahead = try await reader.next(maximumBytes: BoundedReader<Log.Reader>.readBytes)[...]
            } catch is EndOfRange {
                isAtEnd = true
            } catch let error as ChangeLogError {
                guard error.isOutOfRange else { throw error }
                await reader.close()
                (range, reader) = try await Self.open(log, topic, to: range.end)
                isAfterRemoved = true
            } catch {
                throw ChangeLogError(.closed, message: "reading ordered was cancelled")
            }
        }
        return ahead.first
    }

    private static func piece(in value: [UInt8]) -> PieceID? {
        do {
            let header = try OrderedPieceHeader(decoding: value)
            return PieceID(changesOffset: header.changesOffset, piece: header.piece)
        } catch {
            // The caller reports it as a difference.
            return nil
        }
    }

    // MARK: Differences

    /// A record that is missing: removed by retention where nothing older is kept, else lost.
    private func miss(_ expected: NewRecord, before offset: Int64) -> Int64 {
        if isAfterRemoved {
            removed += 1
            return -1
        }
        compared += 1
        differences.add(
            Difference("ordered before offset \(offset)", expected: describe(expected.value), found: "no such record"))
        return max(range.start, offset) - 1
    }

    private func extra(_ found: LogRecord) -> Difference {
        Difference(
            "ordered offset \(found.offset)", expected: "no record that is not a result of changes",
            found: describe(found.value))
    }

    private func unreadable(_ found: LogRecord) -> Difference {
        Difference("ordered offset \(found.offset)", expected: "a result", found: describe(found.value))
    }

    private func altered(_ expected: NewRecord, _ found: LogRecord) -> Difference {
        let item = "ordered offset \(found.offset)"
        guard found.key == expected.key else {
            return Difference(
                item + ", key", expected: DifferenceFormatter.quoted(expected.key),
                found: DifferenceFormatter.quoted(found.key))
        }
        do {
            let made = try OrderedPiece(decoding: expected.value)
            let there = try OrderedPiece(decoding: found.value)
            let names = RowNames(schemas[made.schema]?.schema)
            if let difference = PieceDifference(names).first(made, there, item: item) { return difference }
            return Difference(
                item, expected: "\(expected.value.count) bytes",
                found: "other bytes of the same content (\(found.value.count))")
        } catch {
            return Difference(item, expected: describe(expected.value), found: "a record that cannot be read: \(error)")
        }
    }

    private func describe(_ value: [UInt8]) -> String {
        do {
            let header = try OrderedPieceHeader(decoding: value)
            return "piece \(header.piece) of the result of changes offset \(header.changesOffset)"
        } catch {
            return "a record that cannot be read: \(error)"
        }
    }
}

extension ChangeLogError {
    fileprivate var isOutOfRange: Bool {
        if case .outOfRange = code { true } else { false }
    }
}
