import AsyncPrimitives
import Synchronization

/// A group's request to one of its services to stop.
final class ShutdownSignal: Sendable {
    /// The signal of the current task's service.
    @TaskLocal static var current: ShutdownSignal?

    private struct Handlers {
        var isTriggered = false
        var next: UInt64 = 0
        /// One for each running `withGracefulShutdownHandler`.
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

    /// Registers a handler to be called once on shutdown; calls it at once if shutdown has begun.
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

/// Waits until the group asks the service of this task to stop; outside a service, until the task is cancelled.
///
/// - Throws: `CancellationError` if the task is cancelled first.
package func gracefulShutdown() async throws(CancellationError) {
    // A signal without a group is never triggered.
    try await (ShutdownSignal.current ?? ShutdownSignal()).wait()
}

/// Whether the service of this task has been asked to stop.
package var isShuttingDownGracefully: Bool {
    ShutdownSignal.current?.isTriggered ?? false
}

/// Runs an operation, and calls the handler once if the service is asked to stop before the operation ends.
///
/// The handler runs on any thread and must not block. It makes the operation end, for example by closing a listener.
package func withGracefulShutdownHandler<Value>(
    isolation: isolated (any Actor)? = #isolation, operation: () async throws -> Value,
    onGracefulShutdown handler: @escaping @Sendable () -> Void
) async rethrows -> Value {
    guard let signal = ShutdownSignal.current else { return try await operation() }
    let ticket = signal.add(handler)
    defer { if let ticket { signal.remove(ticket) } }
    return try await operation()
}

/// Runs an operation, and cancels it when the service is asked to stop.
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
