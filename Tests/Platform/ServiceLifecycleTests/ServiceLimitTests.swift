import Observability
import ServiceLifecycle
import Synchronization
import TestClocks
import Testing

/// The bounds in time.
@Suite(.timeLimit(.minutes(5))) struct ServiceLimitTests {
    private let record = Record()
    private let clock = ManualClock()

    @Test func endsIfAServiceIsNotReadyInTime() async throws {
        var second = Script(name: "b", record: record)
        second.ready = { try await Switch().wait() }
        let group = group(
            [.init("a", Script(name: "a", record: record)), .init("b", second, startLimit: .seconds(7))], clock: clock)
        let ended = Task { try await group.run() }
        await clock.sleeper(for: .seconds(7))
        clock.advance(by: .seconds(7))
        let error = await #expect(throws: ServiceGroupError.self) { try await ended.value }
        #expect(error == .startLimitPassed(service: "b", limit: .seconds(7)))
        #expect(record.lines.suffix(4) == ["b stops", "b flushed", "a stops", "a flushed"])
    }

    @Test func hasNoLimitWhileEveryServiceRuns() async throws {
        let group = ServiceGroup(
            [.init("a", Script(name: "a", record: record), startLimit: .seconds(7))], logger: logger(), clock: clock)
        let ended = Task { try await group.run() }
        await record.until("log: Every service is ready count=1")
        clock.advance(by: .seconds(1_000_000))
        group.shutDown(reason: "test")
        try await ended.value
        #expect(record.lines.last == "log: Service ended service=a")
    }

    @Test func cancelsAServiceAtItsStopLimitAndStopsTheOthers() async throws {
        let stuck = Script(name: "b", record: record, flush: { try await Switch().wait() })
        let group = group(
            [
                .init("a", Script(name: "a", record: record, flush: { try Task.checkCancellation() })),
                .init("b", stuck, stopLimit: .seconds(20)),
            ], clock: clock)
        let ended = Task { try await group.run() }
        await record.until("b runs")
        group.shutDown(reason: "test")
        await clock.sleeper(for: .seconds(20))
        await record.until("b stops")
        clock.advance(by: .seconds(19))
        #expect(record.lines.last == "b stops")
        clock.advance(by: .seconds(1))
        let error = await #expect(throws: ServiceGroupError.self) { try await ended.value }
        #expect(error == .stopLimitPassed(service: "b", limit: .seconds(20)))
        #expect(record.lines.suffix(4) == ["b stops", "b throws", "a stops", "a flushed"])
    }

    @Test func abandonsAServiceThatIgnoresCancellation() async throws {
        let release = Switch()
        let stuck = Script(name: "b", record: record, flush: { await release.waitStubbornly() })
        let group = group(
            [.init("a", Script(name: "a", record: record)), .init("b", stuck, stopLimit: .seconds(20))], clock: clock)
        let ended = Task { try await group.run() }
        await record.until("b runs")
        group.shutDown(reason: "test")
        await clock.sleeper(for: .seconds(20))
        clock.advance(by: .seconds(20))
        await clock.sleeper(for: .seconds(5))
        #expect(!record.lines.contains("a stops"))
        clock.advance(by: .seconds(5))
        let error = await #expect(throws: ServiceGroupError.self) { try await ended.value }
        #expect(error == .stopLimitPassed(service: "b", limit: .seconds(20)))
        #expect(record.lines.last == "a flushed")
        release.open()
        await record.until("b flushed cancelled")
    }

    @Test func logsTheLifeOfItsServices() async throws {
        let broken = Script(name: "a", record: record, flush: { throw Failure(name: "x") })
        let group = ServiceGroup([.init("a", broken)], logger: logger(), clock: clock)
        let ended = Task { try await group.run() }
        await record.until("log: Every service is ready count=1")
        group.shutDown(reason: "test")
        await #expect(throws: Failure.self) { try await ended.value }
        #expect(
            record.lines.filter { $0.hasPrefix("log: ") } == [
                "log: Service starting service=a", "log: Service is ready service=a",
                "log: Every service is ready count=1", "log: Shutting down reason=test",
                "log: Service stopping service=a", "log: Service failed service=a error=\"Failure(name: \\\"x\\\")\"",
            ])
    }

    /// A logger that writes into the record.
    private func logger() -> Logger {
        Logger(label: "group", output: LogOutput(format: .text, to: RecordSink(record: record)), level: .debug)
    }

    private struct RecordSink: LogSink {
        let record: Record

        func write(_ line: [UInt8]) {
            let text = String(decoding: line.dropLast(), as: UTF8.self)
            record.add("log: " + text.split(separator: "group: ", maxSplits: 1)[1])
        }
    }
}
