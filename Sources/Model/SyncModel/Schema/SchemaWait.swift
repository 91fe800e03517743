/// Waits, without polling, until the schema versions that a process knows are as a condition wants them.
///
/// The condition is asked at once and whenever a version has come. `CancellationError` when the task is cancelled first.
package typealias SchemaWait = @Sendable (_ isMet: @escaping @Sendable (SchemaHistory) -> Bool) async throws -> Void

extension SchemaHistory {
    /// The wait of a process that learns of no version while it runs: it ends with the task.
    package static let noFurtherVersions: SchemaWait = { _ in
        let (never, end) = AsyncStream.makeStream(of: Void.self)
        for await _ in never {}
        end.finish()
        throw CancellationError()
    }
}
