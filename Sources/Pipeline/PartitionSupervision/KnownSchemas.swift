import AsyncPrimitives
import SyncModel

/// The schema versions that a process knows and the records that it leaves out, from `control`, and the tasks that wait for
/// either.
package final class KnownSchemas: Sendable {
    /// What is known at one moment.
    package struct Content: Sendable {
        package fileprivate(set) var schemas: SchemaHistory
        /// All that were decided before the newest of the versions, at least.
        package fileprivate(set) var skipped: SkippedRecords
    }

    private let state: AwaitableState<Content>

    package init(_ schemas: SchemaHistory = SchemaHistory(), leavingOut skipped: SkippedRecords = SkippedRecords()) {
        state = AwaitableState(Content(schemas: schemas, skipped: skipped))
    }

    /// The versions known at this moment.
    package var now: SchemaHistory { state.read(\.schemas) }

    /// The versions and the decisions known at this moment.
    package var content: Content { state.value }

    /// Makes further versions and decisions known and resumes the tasks that wait for them.
    ///
    /// - Parameters:
    ///   - schemas: the same history; without effect where it has no more versions than are known.
    ///   - skipped: likewise.
    package func learn(
        _ schemas: SchemaHistory = SchemaHistory(), leavingOut skipped: SkippedRecords = SkippedRecords()
    ) {
        state.update { known in
            if schemas.entries.count > known.schemas.entries.count { known.schemas = schemas }
            if skipped.entries.count > known.skipped.entries.count { known.skipped = skipped }
        }
    }

    /// Waits until what is known meets a condition.
    ///
    /// - Parameter isMet: evaluated immediately and whenever something becomes known; must not block.
    /// - Throws: `CancellationError` when the task is cancelled first.
    package func wait(until isMet: @escaping @Sendable (Content) -> Bool) async throws(CancellationError) {
        try await state.wait(until: isMet)
    }
}
