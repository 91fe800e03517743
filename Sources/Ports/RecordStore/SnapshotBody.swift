/// Reads a snapshot for a caller: what the caller's body throws comes out as it is, and is not taken for a failure of the
/// store, which may be of the same type.
///
/// - Parameters:
///   - body: the caller's.
///   - failure: what a failure of the store means for callers.
///   - read: reads, and hands the pieces on.
/// - Throws: what the body throws, `CancellationError`, and the failures.
package func readSnapshot(
    for body: @escaping @Sendable (SnapshotChunk) throws -> Void, failure: (any Error) -> RecordStoreError,
    reading read: (@escaping @Sendable (SnapshotChunk) throws -> Void) async throws -> Void
) async throws {
    do {
        try await read { piece in
            do {
                try body(piece)
            } catch {
                throw BodyFailure(cause: error)
            }
        }
    } catch let failure as BodyFailure {
        throw failure.cause
    } catch is CancellationError {
        throw CancellationError()
    } catch {
        throw failure(error)
    }
}

private struct BodyFailure: Error {
    let cause: any Error
}
