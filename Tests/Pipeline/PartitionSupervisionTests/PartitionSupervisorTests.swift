import AsyncPrimitives
import Metrics
import PartitionSupervision
import SyncModel
import Synchronization
import TestClocks
import Testing

@Suite(.timeLimit(.minutes(5))) struct PartitionSupervisorTests {
    private enum Failure: Error { case passing, lacksSchema, ofRecord, ofOther, ofStage }

    private let clock = RecordingClock()
    private let schemas = KnownSchemas()
    private let registry = MetricRegistry()
    private let failures = PartitionFailures()
    private let events = AwaitableState<[String]>([])

    private var paused: Gauge { registry.gauge(.orderingPaused, [.partition: "0"]) }

    private var position: Gauge { registry.position(of: .ordering, in: 0) }

    private func supervisor(_ clock: (any Clock<Duration>)? = nil) -> PartitionSupervisor {
        PartitionSupervisor(
            "ordering of partition 0",
            retries: RetryPolicy(delays: .seconds(1)...(.seconds(4)), clock: clock ?? self.clock), schemas: schemas,
            failures: failures,
            metrics: PartitionMetrics(retries: registry.retries(of: .ordering), paused: paused, position: position)
        ) { failure in
            switch failure as? Failure {
            case .passing: .retry
            case .lacksSchema: .awaitSchema { $0.schemas.entries.count == 1 }
            case .ofRecord, .ofOther: .pausePartition
            case .ofStage, nil: .stopStage
            }
        } report: { [events] event in
            events.update { $0.append("\(event)".split(separator: "(")[0].description) }
        }
    }

    @Test func failureThatMayPassIsRetriedWithBackoff() async throws {
        var runs = 0
        let failures = failures
        let result = try await supervisor().run { progress in
            runs += 1
            #expect((failures.reason == nil) == (runs == 1))
            if runs == 3 {
                progress.made()
                #expect(failures.reason == nil)
            }
            if runs < 5 { throw Failure.passing }
            return runs
        }
        #expect(result == 5)
        #expect(clock.sleeps == [1, 2, 1, 2].map(Duration.seconds))
        #expect(registry.retries(of: .ordering).value == 4)
        #expect(events.value == Array(repeating: "retrying", count: 4))
    }

    /// Another process works on it afterwards, and its lag is that process's.
    @Test func positionIsUnknownOnceNothingWorksOnThePartition() async throws {
        let position = position
        try await supervisor().run { _ in
            position.set(7)
            #expect(position.value == 7)
        }
        #expect(position.value == nil)
        await #expect(throws: Failure.ofStage) {
            try await supervisor().run { _ in
                position.set(8)
                throw Failure.ofStage
            }
        }
        #expect(position.value == nil)
    }

    @Test func partitionIsPausedUntilItsSchemaVersionIsKnown() async throws {
        var runs = 0
        async let result = supervisor().run { _ in
            runs += 1
            if runs == 1 { throw Failure.lacksSchema }
            return runs
        }
        try await events.wait { $0 == ["awaitingSchema"] }
        #expect(paused.value == 1)
        let schema = Schema(tables: [])
        var known = SchemaHistory()
        known.append(SchemaHistory.Entry(version: SchemaVersion(ordinal: 1, hash: "first"), schema: schema))
        schemas.learn(known)
        #expect(try await result == 2)
        #expect(paused.value == 0 && clock.sleeps.isEmpty)
        #expect(events.value == ["awaitingSchema", "schemaKnown"])
    }

    @Test func partitionIsPausedAndTriedAgainUntilItGetsFurther() async throws {
        var runs = 0
        let (failures, paused) = (failures, paused)
        let result = try await supervisor().run { progress in
            runs += 1
            if runs > 1 {
                #expect(paused.value == 1)
                #expect(failures.reason?.hasPrefix("ordering of partition 0: ") == true)
            }
            if runs <= 9 { throw runs < 9 ? Failure.ofRecord : .ofOther }
            progress.made()
            #expect(paused.value == 0)
            #expect(failures.reason == nil)
            return runs
        }
        #expect(result == 10)
        #expect(clock.sleeps == [1, 2, 4, 8, 16, 32, 60, 60, 60].map(Duration.seconds))
        // Each cause is reported once.
        #expect(events.value == ["paused", "paused", "resumed"])
        // It is another process's now.
        #expect(failures.reason == nil)
    }

    @Test func anotherFailureAfterProgressIsTriedAgainSoon() async throws {
        var runs = 0
        let result = try await supervisor().run { progress in
            runs += 1
            if runs == 3 { progress.made() }
            if runs < 5 { throw Failure.ofRecord }
            return runs
        }
        #expect(result == 5)
        #expect(clock.sleeps == [1, 2, 1, 2].map(Duration.seconds))
        #expect(events.value == ["paused", "resumed", "paused"])
    }

    @Test func failureOfTheStageIsThrown() async {
        await #expect(throws: Failure.ofStage) { try await supervisor().run { _ in throw Failure.ofStage } }
        #expect(events.value == ["stageStopped"])
    }

    @Test func cancellationEndsAPauseWithoutAFailure() async throws {
        let clock = ManualClock()
        let supervisor = supervisor(clock)
        let running = Task { try await supervisor.run { _ in throw Failure.passing } }
        await clock.sleepers(1)
        running.cancel()
        #expect(try await running.value == nil)
    }

    @Test func failureAfterCancellationIsReportedAndNotRetried() async throws {
        let supervisor = supervisor()
        let running = Task {
            try await supervisor.run { _ in
                withUnsafeCurrentTask { $0?.cancel() }
                throw Failure.passing
            }
        }
        #expect(try await running.value == nil)
        #expect(events.value == ["cancelled"] && clock.sleeps.isEmpty)
    }
}
