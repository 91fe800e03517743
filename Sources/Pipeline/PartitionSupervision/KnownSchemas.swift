import AsyncPrimitives
import SyncModel

/// The schema versions that a process knows, and the tasks that wait for one it does not know yet.
package final class KnownSchemas: Sendable {
    private let state: AwaitableState<SchemaHistory>

    package init(_ schemas: SchemaHistory = SchemaHistory()) { state = AwaitableState(schemas) }

    /// The versions known at this moment.
    package var now: SchemaHistory { state.value }

    /// Makes further versions known and resumes the tasks that wait for them.
    ///
    /// - Parameter schemas: the same history; without effect where it has no more versions than are known.
    package func learn(_ schemas: SchemaHistory) {
        state.update { known in
            if schemas.entries.count > known.entries.count { known = schemas }
        }
    }

    /// Waits until the versions known meet a condition.
    ///
    /// - Parameter isMet: evaluated immediately and whenever a version becomes known; must not block.
    /// - Throws: `CancellationError` when the task is cancelled first.
    package func wait(until isMet: @escaping @Sendable (SchemaHistory) -> Bool) async throws(CancellationError) {
        try await state.wait(until: isMet)
    }
}
