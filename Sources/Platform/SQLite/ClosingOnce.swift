import Synchronization

/// Runs a closing once, whoever asks for it and however often; everybody waits for its end.
///
/// It runs in a task of its own, so a caller who is cancelled does not cut it short.
final class ClosingOnce: Sendable {
    private let task = Mutex<Task<Void, any Error>?>(nil)

    func run(_ close: @escaping @Sendable () async throws -> Void) async throws {
        let closing = task.withLock { task in
            if let task { return task }
            let started = Task { try await close() }
            task = started
            return started
        }
        try await closing.value
    }
}
