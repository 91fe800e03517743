import ServiceLifecycle
import Synchronization
import Testing

/// How a service learns that it shall stop.
@Suite(.timeLimit(.minutes(5))) struct GracefulShutdownTests {
    private let record = Record()

    private func runUntil(_ line: String, _ body: @escaping @Sendable () async throws -> Void) async throws {
        let group = group([.init("a", Script(name: "a", record: record, body: body))])
        let ended = Task { try await group.run() }
        await record.until(line)
        group.shutDown(reason: "test")
        try await ended.value
    }

    @Test func callsTheHandlerOnceAndAwaitsTheOperation() async throws {
        let stop = Switch()
        try await runUntil("waits") { [record] in
            #expect(!isShuttingDownGracefully)
            try await withGracefulShutdownHandler {
                record.add("waits")
                try await stop.wait()
            } onGracefulShutdown: {
                record.add("handler")
                stop.open()
            }
            #expect(isShuttingDownGracefully)
            #expect(!Task.isCancelled)
        }
        #expect(record.lines == ["a runs", "waits", "handler", "a stops", "a flushed"])
    }

    @Test func callsTheHandlerAtOnceAfterShutdown() async throws {
        try await runUntil("a runs") { [record] in
            try await gracefulShutdown()
            await withGracefulShutdownHandler {
                record.add("operation")
            } onGracefulShutdown: {
                record.add("handler")
            }
        }
        #expect(record.lines == ["a runs", "handler", "operation", "a stops", "a flushed"])
    }

    @Test func removesTheHandlerAfterTheOperation() async throws {
        try await runUntil("waits") { [record] in
            await withGracefulShutdownHandler {
            } onGracefulShutdown: {
                record.add("handler")
            }
            record.add("waits")
            try await gracefulShutdown()
        }
        #expect(record.lines == ["a runs", "waits", "a stops", "a flushed"])
    }

    @Test func cancelsTheOperationOnShutdown() async throws {
        try await runUntil("waits") { [record] in
            let error = await #expect(throws: CancellationError.self) {
                try await cancelWhenGracefulShutdown {
                    record.add("waits")
                    try await Switch().wait()
                }
            }
            #expect(error != nil)
            #expect(!Task.isCancelled)
        }
        #expect(record.lines == ["a runs", "waits", "a stops", "a flushed"])
    }

    @Test func reachesTheChildTasksOfAService() async throws {
        try await runUntil("child") { [record] in
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask {
                    record.add("child")
                    try await gracefulShutdown()
                }
                try await tasks.waitForAll()
            }
        }
        #expect(record.lines.last == "a flushed")
    }

    @Test func waitsOnlyForCancellationOutsideAService() async throws {
        let task = Task { try await gracefulShutdown() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(!isShuttingDownGracefully)
    }
}

/// What the operations port reads.
@Suite struct ReadinessTests {
    @Test func isReadyWhenEveryConditionIs() {
        let readiness = Readiness()
        #expect(readiness.report.isReady)
        let store = readiness.addCondition("store")
        let log = readiness.addCondition("log", unready: "connecting")
        #expect(!readiness.report.isReady)
        #expect(readiness.report.conditions.map(\.name) == ["store", "log"])
        #expect(readiness.report.conditions.map(\.unreadyReason) == ["starting", "connecting"])
        store.setReady()
        #expect(!readiness.report.isReady)
        log.setReady()
        #expect(readiness.report.isReady)
        store.setUnready("disk full")
        #expect(readiness.report.conditions.map(\.unreadyReason) == ["disk full", nil])
        #expect(!readiness.report.isReady)
    }

    @Test func letsTasksWaitForACondition() async throws {
        let condition = Readiness().addCondition("store")
        async let first: Void = condition.untilReady()
        async let second: Void = condition.untilReady()
        condition.setReady()
        try await first
        try await second
        try await condition.untilReady()
        condition.setUnready("gone")
        let waiting = Task { try await condition.untilReady() }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }
}
