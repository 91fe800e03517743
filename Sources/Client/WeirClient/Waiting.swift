/// A task's value, for which a caller that is cancelled does not wait, as it does for `value`; the task is not cancelled.
func valueOrCancellation<Value: Sendable>(of task: Task<Value, any Error>) async throws -> Value {
    let (ends, end) = AsyncStream.makeStream(of: Result<Value, any Error>.self)
    Task {
        end.yield(await task.result)
        end.finish()
    }
    for await result in ends { return try result.get() }
    throw CancellationError()
}
