import AsyncPrimitives
import ChangeLog
import SyncModel
import Synchronization

/// Decisions about devices on their way to the topic.
struct PendingDecisions: Sendable {
    var waiting: [(decision: DeviceDecision, outcome: Promise<Result<Void, any Error>>)] = []
    var isWriting = false
    /// What the last write read of the topic.
    var view: ControlView
}

extension ControlTopic {
    /// Decisions that may wait while others are written.
    private static let maximumWaiting = 1000

    /// Writes the decision whether a device is revoked, and makes it known here; other processes learn it in a moment.
    ///
    /// The topic is read to its end first, and nothing is written where the decision stands already. Decisions that arrive while
    /// others are written are written together, by one producer.
    ///
    /// - Throws: what is wrong with `control`; `ChangeLogError`, after which repeating the call is harmless.
    package func decide(_ decision: DeviceDecision, in log: some ChangeLog) async throws {
        let outcome = Promise<Result<Void, any Error>>()
        let begins: Bool? = decisions.withLock { state in
            guard state.waiting.count < Self.maximumWaiting else { return nil }
            state.waiting.append((decision, outcome))
            defer { state.isWriting = true }
            return !state.isWriting
        }
        guard let begins else {
            throw ChangeLogError(
                .other, partition: Self.partition, message: "\(Self.maximumWaiting) decisions wait already",
                isRetriable: true)
        }
        // Not in the caller's task: its cancellation concerns no other decision.
        if begins { Task { await writeDecisions(to: log) } }
        try await outcome.value().get()
    }

    private func writeDecisions(to log: some ChangeLog) async {
        while true {
            let batch = decisions.withLock { state in
                defer { state.waiting = [] }
                state.isWriting = !state.waiting.isEmpty
                return state.waiting
            }
            if batch.isEmpty { return }
            let result = await Result.capturing { try await write(batch.map(\.decision), to: log) }
            for (_, outcome) in batch { outcome.fulfil(result) }
        }
    }

    private func write(_ batch: [DeviceDecision], to log: some ChangeLog) async throws {
        var view = try await Self.read(log, after: decisions.withLock { $0.view })
        var revoked = view.revoked
        var news: [ControlRecord] = []
        for decision in batch where revoked.contains(decision.device) != decision.isRevoked {
            revoked.append(decision)
            news.append(.device(decision))
        }
        if !news.isEmpty {
            let offset = try await Self.append(news, to: log)
            view = try await Self.read(log, after: view, through: offset)
        }
        decisions.withLock { $0.view = view }
        // Nothing else of what was read: the process may not be prepared for a schema version.
        devices.learn(view.revoked)
    }
}
