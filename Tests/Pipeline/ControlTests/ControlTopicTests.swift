import ChangeLog
import Control
import MemoryChangeLog
import SyncModel
import SyncWire
import Testing

/// Expects the topic to be refused with a message.
private func expectRefusal(
    _ log: MemoryChangeLog, _ message: String, _ proposed: History = proposed,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    let end = try await log.range(of: place).end
    let error = await #expect(throws: ControlError.self, sourceLocation: sourceLocation) {
        _ = try await ControlTopic.open(in: log, proposed: proposed)
    }
    #expect("\(error.map(String.init(describing:)) ?? "")".contains(message), sourceLocation: sourceLocation)
    #expect(try await log.range(of: place).end == end, "a refusal writes nothing", sourceLocation: sourceLocation)
    await log.close()
}

@Suite(.timeLimit(.minutes(5)))
struct ControlTopicTests {
    @Test
    func givesANewLogTheHistoryProposed() async throws {
        let log = emptyLog()
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        #expect(control.history == proposed)
        #expect(control.schemas == SchemaHistory())
        #expect(try await log.range(of: place).end == 1)
        await log.close()
    }

    @Test
    func findsHistoryAndSchemasAgain() async throws {
        let log = emptyLog()
        let first = try await ControlTopic.open(in: log, proposed: proposed)
        try await first.register(one, in: log)
        try await first.register(two, in: log)
        // What a history keeps of its making counts, whatever is proposed later.
        let other = History(epoch: "e2", partitions: 2, clock: .sequence(first: 100), pieceSize: 9999)
        let again = try await ControlTopic.open(in: log, proposed: other)
        #expect(again.history == proposed)
        #expect(again.schemas == first.schemas)
        #expect(again.schemas.entries.count == 2)
        #expect(try await log.range(of: place).end == 3)
        await log.close()
    }

    @Test
    func registersASchemaOnceAndNumbersWhatFollows() async throws {
        let log = emptyLog()
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        #expect(try await control.register(one, in: log).version.ordinal == 1)
        #expect(try await control.register(one, in: log).version.ordinal == 1)
        #expect(try await log.range(of: place).end == 2)
        let second = try await control.register(two, in: log)
        #expect(second.version.ordinal == 2)
        #expect(control.schemas.newest == second)
        #expect(try await log.range(of: place).end == 3)
        await log.close()
    }

    @Test
    func refusesASchemaThatLosesDataAndWritesNothing() async throws {
        let log = emptyLog()
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        try await control.register(one, in: log)
        let error = await #expect(throws: ControlError.self) { try await control.register(incompatible, in: log) }
        #expect("\(try #require(error))".contains("the schema cannot follow the one that this history has"))
        #expect(try await log.range(of: place).end == 2)
        #expect(control.schemas.entries.count == 1)
        await log.close()
    }

    @Test
    func refusesAFirstSchemaThatIsWrongByItself() async throws {
        let log = emptyLog()
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        await #expect(throws: ControlError.self) { try await control.register(one + one, in: log) }
        #expect(try await log.range(of: place).end == 1)
        await log.close()
    }

    @Test
    func knowsNoSchemaThatTheLogDidNotTake() async throws {
        let log = emptyLog()
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        let full = ChangeLogError(.storageFull, message: "no room")
        log.failNextAppend(full)
        await #expect(throws: full) { try await control.register(one, in: log) }
        #expect(control.schemas.entries.isEmpty)
        #expect(try await control.register(one, in: log).version.ordinal == 1)
        await log.close()
    }

    @Test
    func refusesAnotherPartitionCount() async throws {
        let log = emptyLog()
        _ = try await ControlTopic.open(in: log, proposed: proposed)
        var other = proposed
        other.partitions = 3
        try await expectRefusal(log, "made with 2 partitions, 3 are configured", other)
    }

    @Test
    func refusesAnotherPartitionFunction() async throws {
        let log = emptyLog()
        var other = proposed
        other.partitionFunction = "newer"
        try await append([.history(other)], to: log)
        try await expectRefusal(log, "gives owners their partition by newer")
    }

    @Test
    func refusesAnotherNumberOfDatabases() async throws {
        let log = emptyLog()
        // A record that names none is of one database.
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        #expect(control.history.shards == 1)
        var other = proposed
        other.shards = 3
        try await expectRefusal(log, "with its tables in 1 databases, 3 are configured", other)
    }

    @Test
    func findsTheNumberOfDatabasesAgain() async throws {
        let log = emptyLog()
        var sharded = proposed
        sharded.shards = 3
        _ = try await ControlTopic.open(in: log, proposed: sharded)
        #expect(try await ControlTopic.open(in: log, proposed: sharded).history == sharded)
        try await expectRefusal(log, "with its tables in 3 databases, 1 are configured")
    }

    @Test
    func refusesAnotherClock() async throws {
        let log = emptyLog()
        _ = try await ControlTopic.open(in: log, proposed: proposed)
        var other = proposed
        other.clock = .logTime
        try await expectRefusal(log, "made with clock sequence(100), log-time is configured", other)
    }

    @Test
    func refusesTwoHistories() async throws {
        let log = emptyLog()
        var other = proposed
        other.epoch = "e2"
        try await append([.history(proposed), .history(other)], to: log)
        try await expectRefusal(log, "control names two histories")
    }

    @Test
    func takesTheSameRecordTwiceAsOne() async throws {
        let log = emptyLog()
        try await append(
            [.history(proposed), .history(proposed), entry(1, one), entry(1, one), entry(2, two)], to: log)
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        #expect(control.history == proposed)
        #expect(control.schemas.entries.map(\.version.ordinal) == [1, 2])
        await log.close()
    }

    @Test
    func refusesAGapInTheSchemas() async throws {
        let log = emptyLog()
        try await append([.history(proposed), entry(1, one), entry(3, two)], to: log)
        try await expectRefusal(log, "schema version 3 where 2 must come")
    }

    @Test
    func refusesARecordThatItCannotRead() async throws {
        let log = emptyLog()
        try await append([.history(proposed)], to: log)
        let producer = try await log.producer()
        try await producer.append([NewRecord(to: place, value: [0xFF])])
        await producer.close()
        try await expectRefusal(log, "control offset 1: the record cannot be read")
    }

    @Test func anExistingHistoryIsReadWhateverIsConfigured() async throws {
        let log = emptyLog()
        let error = await #expect(throws: ControlError.self) { _ = try await ControlTopic.existing(in: log) }
        #expect("\(error.map(String.init(describing:)) ?? "")".contains("no history"))
        #expect(try await log.range(of: place).end == 0)
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        try await control.register(one, in: log)
        let again = try await ControlTopic.existing(in: log)
        #expect(again.history == proposed)
        #expect(again.schemas == control.schemas)
        await log.close()
    }
}
