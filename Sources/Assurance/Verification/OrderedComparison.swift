import ChangeLog
import SyncModel
import SyncWire

/// Holds what ordering would publish of one partition against what `ordered` has, record by record.
///
/// A worker that took over repeats results (I5): as every reader does, this drops what is not above the last piece that
/// it has seen (I2). What retention took is not compared, whether it is gone already or goes while this reads.
actor OrderedComparison<Log: ChangeLog> {
    /// A result's piece: results come in the order of their messages.
    private struct Place: Comparable {
        let message: Int64
        let piece: Int

        static func < (left: Place, right: Place) -> Bool {
            (left.message, left.piece) < (right.message, right.piece)
        }
    }

    private let log: Log
    private let topic: TopicPartition
    private let schemas: SchemaHistory
    private let first: Int64
    private var range: LogRange
    private var reader: BoundedReader<Log.Reader>
    /// What was read and not looked at yet.
    private var ahead: ArraySlice<LogRecord> = []
    private var isAtEnd = false
    /// The last piece that was new.
    private var last: Place?
    /// Whether retention took what stood here before, so that a result may be missing.
    private var isBehindRemoved: Bool
    private var compared = 0
    private var removed = 0
    private var repeated = 0
    private var differences = Differences()

    /// - Parameter first: the first message whose result will be made. Results of those before it are passed over wherever
    ///   they stand: a worker that took over may have repeated them behind later ones.
    init(_ log: Log, partition: Int, schemas: SchemaHistory, from first: Int64) async throws(ChangeLogError) {
        let place = TopicPartition(.ordered, partition)
        let (range, reader) = try await Self.open(log, place)
        self.log = log
        self.schemas = schemas
        self.first = first
        self.range = range
        self.reader = reader
        topic = place
        isBehindRemoved = range.start > 0
        last = first > 0 ? Place(message: first - 1, piece: .max) : nil
    }

    /// Reads from where the partition begins by now.
    ///
    /// - Parameter end: where to end; `nil`: where the partition ends.
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
                // Retention was between the two.
                guard error.isOutOfRange else { throw error }
            }
        }
    }

    /// Looks again where `ordered` ends, for results that are about to be made of later messages.
    func extend() async throws(ChangeLogError) {
        let end = try await log.range(of: topic).end
        guard end > range.end else { return }
        range = LogRange(start: range.start, end: end)
        await reader.extend(to: end)
        isAtEnd = false
    }

    /// The first difference so far, or what was compared.
    var finding: Finding {
        var text = "\(compared) records up to offset \(range.end)"
        if repeated > 0 { text += ", \(repeated) repeated" }
        if removed > 0 { text += "; \(removed) older ones are not kept any longer" }
        return differences.finding(equal: text)
    }

    /// Whether the results have come to what `ordered` still keeps.
    var hasMet: Bool { last != nil }

    /// Where `ordered` has a record that ordering makes; the place where it would be when it does not, and -1 when it is
    /// not kept any longer: a stream that is made from tables at such a position has nowhere to go on.
    func place(of expected: NewRecord) async throws(ChangeLogError) -> Int64 {
        while let found = try await peek() {
            if found.value == expected.value, found.key == expected.key {
                take(Self.place(in: found.value))
                compared += 1
                return found.offset
            }
            let wanted = Self.place(in: expected.value)
            guard let wanted else { preconditionFailure("ordering publishes pieces") }
            guard let met = Self.place(in: found.value) else {
                ahead.removeFirst()
                differences.add(unreadable(found))
                continue
            }
            if let last, met <= last {
                passRepeat(met)
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

    /// Passes a record that is new.
    private func take(_ place: Place?) {
        ahead.removeFirst()
        last = place
        isBehindRemoved = false
    }

    /// Passes a record that was there before, or that is none of those compared.
    private func passRepeat(_ place: Place) {
        ahead.removeFirst()
        if place.message >= first { repeated += 1 }
    }

    /// The offset up to which the results so far reach: that of the next new piece.
    ///
    /// A position of tables lies between the end of its last result and this.
    func nextNewOffset() async throws -> Int64 {
        while let found = try await peek() {
            guard let last, let met = Self.place(in: found.value), met <= last else { return found.offset }
            passRepeat(met)
        }
        return range.end
    }

    /// Looks at what is left: results of messages up to `end` should all have been met, those behind it are not made.
    ///
    /// - Parameter end: the offset in `changes` up to which results were made.
    /// - Parameter changesEnd: where `changes` ends: there is no message behind it to have a result.
    func finish(at end: Int64, changesEnd: Int64) async throws {
        while let found = try await peek() {
            guard let met = Self.place(in: found.value) else {
                ahead.removeFirst()
                differences.add(unreadable(found))
                continue
            }
            if let last, met <= last {
                passRepeat(met)
                continue
            }
            take(met)
            if met.message < end || met.message >= changesEnd { differences.add(extra(found)) }
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
                isBehindRemoved = true
            } catch {
                throw ChangeLogError(.closed, message: "the reading of ordered was cancelled")
            }
        }
        return ahead.first
    }

    private static func place(in value: [UInt8]) -> Place? {
        do {
            let header = try OrderedPieceHeader(decoding: value)
            return Place(message: header.changesOffset, piece: header.piece)
        } catch {
            // Told as a difference by whoever asks.
            return nil
        }
    }

    // MARK: Differences

    /// A record that is not there: taken by retention where nothing older is kept, else lost.
    private func miss(_ expected: NewRecord, before offset: Int64) -> Int64 {
        if isBehindRemoved {
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
            "ordered offset \(found.offset)", expected: "no record that changes does not give",
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
