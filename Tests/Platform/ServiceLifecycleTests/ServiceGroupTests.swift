import ServiceLifecycle
import TestClocks
import Testing

/// The order in which services start and stop.
@Suite(.timeLimit(.minutes(5))) struct ServiceGroupTests {
    private let record = Record()
    private let clock = ManualClock()

    @Test func startsEachServiceWhenTheOneBeforeIsReady() async throws {
        let ready = Switch()
        let asked = Switch()
        var second = Script(name: "b", record: record)
        second.ready = {
            asked.open()
            try await ready.wait()
        }
        let group = group(
            [
                .init("a", Script(name: "a", record: record)), .init("b", second, startLimit: .seconds(7)),
                .init("c", Script(name: "c", record: record)),
            ], clock: clock)
        let ended = Task { try await group.run() }
        await record.until("b runs")
        try await asked.wait()
        // Its time runs, so the group has done all it does before b is ready.
        await clock.sleeper(for: .seconds(7))
        #expect(record.lines == ["a runs", "b runs"])
        ready.open()
        await record.until("c runs")
        group.shutDown(reason: "test")
        try await ended.value
        #expect(record.lines.prefix(3) == ["a runs", "b runs", "c runs"])
    }

    @Test func stopsInReverseEachWhenTheOneAfterHasFlushed() async throws {
        let flush = Switch()
        var last = Script(name: "c", record: record)
        last.flush = { try await flush.wait() }
        let group = group(
            [
                .init("a", Script(name: "a", record: record)), .init("b", Script(name: "b", record: record)),
                .init("c", last, stopLimit: .seconds(9)),
            ], clock: clock)
        let ended = Task { try await group.run() }
        await record.until("c runs")
        group.shutDown(reason: "test")
        await record.until("c stops")
        await clock.sleeper(for: .seconds(9))
        #expect(record.lines.last == "c stops")
        flush.open()
        try await ended.value
        #expect(
            record.lines.suffix(6) == ["c stops", "c flushed", "b stops", "b flushed", "a stops", "a flushed"])
    }

    @Test func endsWithTheErrorOfAServiceAndLetsTheOthersFlush() async throws {
        let fail = Switch()
        let broken = Script(
            name: "b", record: record,
            body: {
                try await fail.wait()
                throw Failure(name: "b")
            })
        let group = group([
            .init("a", Script(name: "a", record: record, flush: { try Task.checkCancellation() })), .init("b", broken),
            .init("c", Script(name: "c", record: record, flush: { throw Failure(name: "c") })),
        ])
        let ended = Task { try await group.run() }
        await record.until("c runs")
        fail.open()
        let error = await #expect(throws: Failure.self) { try await ended.value }
        #expect(error == Failure(name: "b"))
        #expect(record.lines.suffix(5) == ["b throws", "c stops", "c throws", "a stops", "a flushed"])
    }

    @Test func endsWithTheErrorOfALastFlush() async throws {
        let group = group([
            .init("a", Script(name: "a", record: record)),
            .init("b", Script(name: "b", record: record, flush: { throw Failure(name: "flush") })),
        ])
        let ended = Task { try await group.run() }
        await record.until("b runs")
        group.shutDown(reason: "test")
        let error = await #expect(throws: Failure.self) { try await ended.value }
        #expect(error == Failure(name: "flush"))
        #expect(record.lines.last == "a flushed")
    }

    @Test func stopsGracefullyIfItsTaskIsCancelled() async throws {
        let group = group([
            .init("a", Script(name: "a", record: record, flush: { try Task.checkCancellation() }))
        ])
        let running = Task { try await group.run() }
        await record.until("a runs")
        running.cancel()
        try await running.value
        #expect(record.lines == ["a runs", "a stops", "a flushed"])
    }

    @Test func startsNoFurtherServiceAfterShutdown() async throws {
        var first = Script(name: "a", record: record)
        first.ready = { try await Switch().wait() }
        let group = group([.init("a", first), .init("b", Script(name: "b", record: record))])
        let ended = Task { try await group.run() }
        await record.until("a runs")
        group.shutDown(reason: "test")
        group.shutDown(reason: "again")
        try await ended.value
        #expect(record.lines == ["a runs", "a stops", "a flushed"])
    }

    @Test func endsIfAServiceReturnsUnexpectedly() async throws {
        let group = group([
            .init("a", Script(name: "a", record: record)), .init("b", Script(name: "b", record: record, body: {})),
        ])
        let error = await #expect(throws: ServiceGroupError.self) { try await group.run() }
        #expect(error == .finishedUnexpectedly(service: "b"))
        #expect(record.lines.last == "a flushed")
    }

    @Test func continuesIfAServiceMayFinish() async throws {
        let finish = Switch()
        let group = group([
            .init("a", Script(name: "a", record: record, body: {}), mayFinish: true),
            .init("b", Script(name: "b", record: record)),
            .init("c", Script(name: "c", record: record, body: { try await finish.wait() }), mayFinish: true),
        ])
        let ended = Task { try await group.run() }
        await record.until("c runs")
        finish.open()
        await record.until("c flushed")
        #expect(!record.lines.contains("b stops"))
        group.shutDown(reason: "test")
        try await ended.value
        #expect(record.lines.last == "b flushed")
    }

    @Test func endsWhenEveryServiceHasFinished() async throws {
        let group = group([
            .init("a", Script(name: "a", record: record, body: {}), mayFinish: true),
            .init("b", Script(name: "b", record: record, body: {}), mayFinish: true),
        ])
        try await group.run()
        #expect(record.lines.count == 6)
    }

    @Test func endsIfAServiceCannotBecomeReady() async throws {
        var second = Script(name: "b", record: record)
        second.ready = { throw Failure(name: "ready") }
        let group = group([
            .init("a", Script(name: "a", record: record)), .init("b", second),
            .init("c", Script(name: "c", record: record)),
        ])
        let error = await #expect(throws: Failure.self) { try await group.run() }
        #expect(error == Failure(name: "ready"))
        #expect(!record.lines.contains("c runs"))
        #expect(record.lines.last == "a flushed")
    }
}
