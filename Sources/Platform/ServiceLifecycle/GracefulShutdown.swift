import AsyncPrimitives
import Synchronization

/// The request to stop that a group makes to one of its services.
final class ShutdownSignal: Sendable {
    /// The signal of the service that the current task works for.
    @TaskLocal static var current: ShutdownSignal?

    private struct Handlers {
        var isTriggered = false
        var next: UInt64 = 0
        /// One for each `withGracefulShutdownHandler` in progress.
        var all: [UInt64: @Sendable () -> Void] = [:]
    }

    private let gate = Gate()
    private let handlers = Mutex(Handlers())

    var isTriggered: Bool { gate.isOpen }

    func wait() async throws(CancellationError) {
        try await gate.wait()
    }

    func trigger() {
        let called = handlers.withLock { handlers in
            handlers.isTriggered = true
            defer { handlers.all = [:] }
            return handlers.all.sorted { $0.key < $1.key }.map(\.value)
        }
        gate.open()
        for handler in called { handler() }
    }

    /// Has the handler called once on shutdown, at once where that has begun.
    func add(_ handler: @escaping @Sendable () -> Void) -> UInt64? {
        let ticket: UInt64? = handlers.withLock { handlers in
            guard !handlers.isTriggered else { return nil }
            handlers.next += 1
            handlers.all[handlers.next] = handler
            return handlers.next
        }
        if ticket == nil { handler() }
        return ticket
    }

    func remove(_ ticket: UInt64) {
        handlers.withLock { _ = $0.all.removeValue(forKey: ticket) }
    }
}

/// Waits until the group asks the service of this task to stop.
///
/// Outside a service it waits for cancellation alone.
///
/// - Throws: `CancellationError` where the task is cancelled before.
package func gracefulShutdown() async throws(CancellationError) {
    // Nobody opens the gate of a signal that no group knows.
    try await (ShutdownSignal.current ?? ShutdownSignal()).wait()
}

/// Whether the service of this task has been asked to stop.
package var isShuttingDownGracefully: Bool {
    ShutdownSignal.current?.isTriggered ?? false
}

/// Runs an operation and calls the handler once if the service is asked to stop meanwhile, at once if it has been.
///
/// The handler runs on whatever thread asks and must not block: it closes a listener or ends a stream, so that the
/// operation comes to its end.
package func withGracefulShutdownHandler<Value>(
    isolation: isolated (any Actor)? = #isolation, operation: () async throws -> Value,
    onGracefulShutdown handler: @escaping @Sendable () -> Void
) async rethrows -> Value {
    guard let signal = ShutdownSignal.current else { return try await operation() }
    let ticket = signal.add(handler)
    defer { if let ticket { signal.remove(ticket) } }
    return try await operation()
}

/// Runs an operation that has nothing to finish and is cancelled when the service is asked to stop.
package func cancelWhenGracefulShutdown<Value: Sendable>(
    _ operation: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    let task = Task { try await operation() }
    return try await withTaskCancellationHandler {
        try await withGracefulShutdownHandler {
            try await task.value
        } onGracefulShutdown: {
            task.cancel()
        }
    } onCancel: {
        task.cancel()
    }
}
