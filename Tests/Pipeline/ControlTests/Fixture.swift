import ChangeLog
import MemoryChangeLog
import Observability
import SyncModel
import SyncWire
import Synchronization
import TestClocks

let proposed = History(epoch: "e1", partitions: 2, clock: .sequence(first: 100), pieceSize: 400)
let place = TopicPartition(.control, 0)

func emptyLog() -> MemoryChangeLog { MemoryChangeLog(MemoryLogContents(partitionCount: 2)) }

private func table(_ columns: [Column]) -> [Table] { [Table(name: "note", columns: columns)] }

let one = table([Column(name: "a", type: .text)])
let two = table([Column(name: "a", type: .text), Column(name: "b", type: .integer)])
let three = table([
    Column(name: "a", type: .text), Column(name: "b", type: .integer), Column(name: "c", type: .integer),
])
let incompatible = table([Column(name: "a", type: .integer)])

/// Appends records as they are, each under a key of its own.
func append(_ records: [ControlRecord], to log: some ChangeLog) async throws {
    let end = try await log.range(of: place).end
    try await append(
        records.enumerated().map { (key: $1.key(distinguishedBy: "\(end)-\($0)"), value: $1.encode()) }, to: log)
}

func append(_ records: [(key: [UInt8], value: [UInt8])], to log: some ChangeLog) async throws {
    let producer = try await log.producer()
    try await producer.append(records.map { NewRecord(to: place, key: $0.key, value: $0.value) })
    await producer.close()
}

func entry(_ ordinal: Int, _ tables: [Table]) throws -> ControlRecord {
    let schema = try Schema(declaring: tables)
    return .schema(.init(version: SchemaVersion(ordinal: ordinal, of: schema), schema: schema))
}

/// The hashes of schemas in an order.
func hashes(_ schemas: [[Table]]) throws -> [String] {
    try schemas.map { SchemaVersion.hash(of: try Schema(declaring: $0)) }
}

extension SchemaHistory {
    var hashes: [String] { entries.map(\.version.hash) }
}

/// A log in which things happen between the steps of a process.
struct BusyLog: ChangeLog {
    let base: MemoryChangeLog
    /// What another process appends before this one's next producers are made, one element for each.
    let rivals: Rivals
    /// What happens before this one's next producer is made.
    let meanwhile: Once
    /// How many readers fail before one is made.
    let failures = Countdown()

    final class Rivals: Sendable {
        private let records: Mutex<[[ControlRecord]]>

        init(_ records: [[ControlRecord]]) { self.records = Mutex(records) }

        func next() -> [ControlRecord] { records.withLock { $0.isEmpty ? [] : $0.removeFirst() } }
    }

    final class Once: Sendable {
        private let body: Mutex<(@Sendable () async -> Void)?>

        init(_ body: (@Sendable () async -> Void)?) { self.body = Mutex(body) }

        func run() async { await body.withLock { $0.take() }?() }
    }

    final class Countdown: Sendable {
        private let count = Mutex(0)

        func set(_ value: Int) { count.withLock { $0 = value } }

        func next() -> Bool {
            count.withLock { count in
                guard count > 0 else { return false }
                count -= 1
                return true
            }
        }
    }

    init(
        _ base: MemoryChangeLog, rivals: [[ControlRecord]] = [], meanwhile: (@Sendable () async -> Void)? = nil
    ) {
        self.base = base
        self.meanwhile = Once(meanwhile)
        self.rivals = Rivals(rivals)
    }

    var partitionCount: Int { base.partitionCount }
    var maximumRecordSize: Int { base.maximumRecordSize }

    func producer() async throws(ChangeLogError) -> MemoryChangeLog.Producer {
        await meanwhile.run()
        let producer = try await base.producer()
        for record in rivals.next() {
            let name = "rival-\(try await base.range(of: place).end)"
            try await producer.append([
                NewRecord(to: place, key: record.key(distinguishedBy: name), value: record.encode())
            ])
        }
        return producer
    }

    func reader(
        of partition: TopicPartition, from offset: Int64
    ) async throws(ChangeLogError) -> MemoryChangeLog.Reader {
        if failures.next() { throw ChangeLogError(.inputOutput, message: "no leader", isRetriable: true) }
        return try await base.reader(of: partition, from: offset)
    }

    func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        try await base.range(of: partition)
    }

    func join(group: String, topic: Topic) async throws(ChangeLogError) -> MemoryChangeLog.Membership {
        try await base.join(group: group, topic: topic)
    }
}

/// The lines logged, in their order, for one reader.
final class Lines: LogSink {
    private let added: AsyncStream<String>.Continuation
    private let lines: AsyncStream<String>

    init() { (lines, added) = AsyncStream.makeStream(of: String.self) }

    var logger: Logger { Logger(label: "control", output: LogOutput(format: .text, to: self)) }

    func write(_ line: [UInt8]) { added.yield(String(decoding: line, as: UTF8.self)) }

    /// The next line with a text.
    func next(with text: String) async -> String? { await lines.first { $0.contains(text) } }
}

/// What a process found each time it looked at the topic.
final class Looks: Sendable {
    private let added: AsyncStream<String?>.Continuation
    private let found: AsyncStream<String?>

    init() { (found, added) = AsyncStream.makeStream(of: String?.self) }

    func add(_ fault: String?) { added.yield(fault) }

    /// What it finds next: why something is wrong, or nothing.
    func next() async -> String?? { await found.first { _ in true } }
}

/// A log in whose place another one may come.
final class ReplacedLog: ChangeLog {
    private let current: Mutex<MemoryChangeLog>

    init(_ log: MemoryChangeLog) { current = Mutex(log) }

    func replace(_ log: MemoryChangeLog) { current.withLock { $0 = log } }

    private var log: MemoryChangeLog { current.withLock(\.self) }

    var partitionCount: Int { log.partitionCount }
    var maximumRecordSize: Int { log.maximumRecordSize }

    func producer() async throws(ChangeLogError) -> MemoryChangeLog.Producer { try await log.producer() }

    func reader(
        of partition: TopicPartition, from offset: Int64
    ) async throws(ChangeLogError) -> MemoryChangeLog.Reader {
        try await log.reader(of: partition, from: offset)
    }

    func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        try await log.range(of: partition)
    }

    func join(group: String, topic: Topic) async throws(ChangeLogError) -> MemoryChangeLog.Membership {
        try await log.join(group: group, topic: topic)
    }
}
