import Synchronization

/// A value behind a lock, and tasks that wait until it meets a condition: a monitor for async code.
public final class AwaitableState<Value: Sendable>: Sendable {
    @usableFromInline typealias Waiter = (
        number: UInt64, isMet: @Sendable (Value) -> Bool, continuation: CheckedContinuation<Bool, Never>
    )

    @usableFromInline struct Storage {
        @usableFromInline var value: Value
        @usableFromInline var lastNumber: UInt64 = 0
        /// In the order of arrival, so that the order of waking is not random; one for each suspended task.
        @usableFromInline var waiters: [Waiter] = []

        @inlinable init(_ value: Value) { self.value = value }
    }

    @usableFromInline let storage: Mutex<Storage>

    /// A state that no task waits for yet.
    @inlinable public init(_ value: Value) { storage = Mutex(Storage(value)) }

    /// A copy of the value as it is now.
    @inlinable public var value: Value { storage.withLock { $0.value } }

    /// Reads a part of a large value without copying the whole.
    @inlinable public func read<Result: Sendable>(_ body: (Value) -> Result) -> Result {
        storage.withLock { body($0.value) }
    }

    /// Changes what no condition depends on: no task is resumed.
    @inlinable @discardableResult
    public func change<Result: Sendable, Failure: Error>(
        _ change: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try storage.withLock { storage throws(Failure) in try change(&storage.value) }
    }

    /// Changes the value and resumes the tasks whose condition it meets then.
    @inlinable @discardableResult
    public func update<Result: Sendable, Failure: Error>(
        _ change: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let (result, met) = try storage.withLock { storage throws(Failure) -> (Result, [Waiter]) in
            let result = try change(&storage.value)
            if storage.waiters.isEmpty { return (result, []) }
            let value = storage.value
            var met: [Waiter] = []
            storage.waiters.removeAll { waiter in
                guard waiter.isMet(value) else { return false }
                met.append(waiter)
                return true
            }
            return (result, met)
        }
        for waiter in met { waiter.continuation.resume(returning: true) }
        return result
    }

    /// Waits until the value meets a condition.
    ///
    /// - Parameter isMet: evaluated under the lock, immediately and after each update; must not block.
    /// - Throws: `CancellationError` when the task is cancelled before the condition is met.
    @inlinable public func wait(until isMet: @escaping @Sendable (Value) -> Bool) async throws(CancellationError) {
        let number = storage.withLock { storage in
            storage.lastNumber += 1
            return storage.lastNumber
        }
        let wasMet = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
                // A task is marked as cancelled before its handler runs: either the handler finds the waiter, or the mark
                // is seen here.
                let answer: Bool? = storage.withLock { storage in
                    if isMet(storage.value) { return true }
                    if Task.isCancelled { return false }
                    storage.waiters.append((number, isMet, continuation))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let waiter = storage.withLock { storage in
                storage.waiters.firstIndex { $0.number == number }.map { storage.waiters.remove(at: $0) }
            }
            waiter?.continuation.resume(returning: false)
        }
        guard wasMet else { throw CancellationError() }
    }
}
