import AsyncPrimitives

/// A result that an adapter delivers later: fulfilled once, awaited any number of times.
///
/// An adapter fulfils every promise that it made, at the latest when it is closed, so a wait always ends.
package struct LogPromise<Value: Sendable>: Sendable {
    private let promise = Promise<Result<Value, ChangeLogError>>()

    package init() {}

    /// Ends every wait; traps when it did before.
    package func fulfil(_ result: Result<Value, ChangeLogError>) {
        if !promise.fulfil(result) { preconditionFailure("a promise is fulfilled once") }
    }

    /// Waits for the result; cancellation does not cut the wait short.
    package func value() async throws(ChangeLogError) -> Value { try await promise.value().get() }
}

extension LogPromise<[Int64]> {
    /// What a producer returns to its caller.
    package var receipt: AppendReceipt { AppendReceipt { [promise] in await promise.value() } }
}
