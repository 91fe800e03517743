import AsyncPrimitives

/// A result that an adapter delivers later.
///
/// An adapter fulfils every promise that it made once, at the latest when it is closed, so a wait always ends.
package typealias LogPromise<Value: Sendable> = Promise<Result<Value, ChangeLogError>>

extension LogPromise<[Int64]> {
    /// What a producer returns to its caller.
    package var receipt: AppendReceipt { AppendReceipt { await self.value() } }
}
