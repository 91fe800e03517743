import Observability
import ServiceLifecycle
import Synchronization
import TestClocks

/// What happened, in order; tests wait for a line.
final class Record: Sendable {
    private struct State {
        var lines: [String] = []
        var waiting: [(line: String, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var lines: [String] { state.withLock(\.lines) }

    func add(_ line: String) {
        let met = state.withLock { state in
            state.lines.append(line)
            let met = state.waiting.filter { $0.line == line }.map(\.continuation)
            state.waiting.removeAll { $0.line == line }
            return met
        }
        for continuation in met { continuation.resume() }
    }

    func until(_ line: String) async {
        await withCheckedContinuation { continuation in
            let isMet = state.withLock { state in
                if state.lines.contains(line) { return true }
                state.waiting.append((line, continuation))
                return false
            }
            if isMet { continuation.resume() }
        }
    }
}

struct Failure: Error, Equatable {
    let name: String
}

/// A service made of closures.
struct Script: Service {
    let name: String
    let record: Record
    var ready: @Sendable () async throws -> Void = {}
    /// What follows "runs"; by default it waits for shutdown.
    var body: @Sendable () async throws -> Void = { try await gracefulShutdown() }
    /// The last flush.
    var flush: @Sendable () async throws -> Void = {}

    func untilReady() async throws {
        // Those after it start when it runs, whatever the order in which tasks get their turn.
        await record.until("\(name) runs")
        try await ready()
    }

    func run() async throws {
        record.add("\(name) runs")
        do {
            try await body()
            record.add(Task.isCancelled ? "\(name) stops cancelled" : "\(name) stops")
            try await flush()
            record.add(Task.isCancelled ? "\(name) flushed cancelled" : "\(name) flushed")
        } catch {
            record.add("\(name) throws")
            throw error
        }
    }
}

/// A switch that tests throw once.
final class Switch: Sendable {
    private let condition = Readiness().addCondition("switch")

    func open() { condition.setReady() }

    func wait() async throws { try await condition.untilReady() }

    /// Waits whatever happens to the task.
    func waitStubbornly() async {
        let task = Task { try await condition.untilReady() }
        _ = await task.result
    }
}

func group(_ members: [ServiceGroup.Member], clock: ManualClock = ManualClock()) -> ServiceGroup {
    ServiceGroup(members, logger: .disabled, cancellationLimit: .seconds(5), clock: clock)
}
