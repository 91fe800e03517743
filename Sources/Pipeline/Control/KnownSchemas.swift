import SyncModel
import Synchronization

/// The schema versions that a process knows, and the tasks that wait for one it does not know yet.
package final class KnownSchemas: Sendable {
    private struct Waiting {
        let isMet: @Sendable (SchemaHistory) -> Bool
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var schemas: SchemaHistory
        var lastNumber = 0
        /// One for each task that waits: as many as partitions that stand still.
        var waiting: [Int: Waiting] = [:]
    }

    private let state: Mutex<State>

    /// Begins with the versions known.
    package init(_ schemas: SchemaHistory = SchemaHistory()) { state = Mutex(State(schemas: schemas)) }

    /// The versions known at this moment.
    package var now: SchemaHistory { state.withLock { $0.schemas } }

    /// Makes further versions known and wakes whoever waits for them; what is known already stays.
    ///
    /// - Parameter schemas: the same history, with as many versions or more.
    package func learn(_ schemas: SchemaHistory) {
        let met = state.withLock { state in
            guard schemas.entries.count > state.schemas.entries.count else { return [Waiting]() }
            state.schemas = schemas
            let met = state.waiting.filter { $0.value.isMet(schemas) }
            for number in met.keys { state.waiting[number] = nil }
            // In the order of their coming, so that nothing is left to chance.
            return met.sorted { $0.key < $1.key }.map(\.value)
        }
        for waiting in met { waiting.continuation.resume(returning: true) }
    }

    /// Waits, without polling, until the versions known are as a condition wants them.
    ///
    /// - Parameter isMet: asked at once and whenever a version has come; must return at once.
    /// - Throws: `CancellationError` when the task is cancelled first.
    package func wait(until isMet: @escaping @Sendable (SchemaHistory) -> Bool) async throws {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let hasCome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer: Bool? = state.withLock { state in
                    if isMet(state.schemas) { return true }
                    // A cancellation before this has found nobody to wake; one after it will.
                    if Task.isCancelled { return false }
                    state.waiting[number] = Waiting(isMet: isMet, continuation: continuation)
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: number) }?.continuation.resume(returning: false)
        }
        guard hasCome else { throw CancellationError() }
    }
}
