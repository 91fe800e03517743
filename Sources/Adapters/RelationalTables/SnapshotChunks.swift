import RecordStore
import SyncModel

/// Collects the rows, outcomes and usage of a snapshot and passes them on in chunks; rows of one chunk have one owner.
package struct SnapshotChunks {
    /// So many that the call for a chunk does not matter.
    private static let maximumCount = 1000
    /// Of values or encoded outcomes; a chunk ends when it reaches them.
    private static let maximumBytes = 1 << 20

    private let body: (SnapshotChunk) throws -> Void
    private var rows: [OrderedRow] = []
    private var outcomes: [StoredOutcome] = []
    private var usage: [StoredUsage] = []
    private var bytes = 0

    package init(_ body: @escaping (SnapshotChunk) throws -> Void) { self.body = body }

    package mutating func append(_ row: OrderedRow) throws {
        if let last = rows.last, last.key.owner != row.key.owner { try flush() }
        bytes += row.values.bytes.count
        rows.append(row)
        if rows.count == Self.maximumCount || bytes >= Self.maximumBytes { try flush() }
    }

    /// - Parameter encodedBytes: the outcome's size.
    package mutating func append(_ outcome: StoredOutcome, encodedBytes: Int) throws {
        bytes += encodedBytes
        outcomes.append(outcome)
        if outcomes.count == Self.maximumCount || bytes >= Self.maximumBytes { try flush() }
    }

    package mutating func append(_ stored: StoredUsage) throws {
        usage.append(stored)
        if usage.count == Self.maximumCount { try flush() }
    }

    /// Passes on what is left: after the last row, the last outcome and the last usage.
    package mutating func flush() throws {
        try Task.checkCancellation()
        if !rows.isEmpty { try body(.rows(rows)) }
        if !outcomes.isEmpty { try body(.outcomes(outcomes)) }
        if !usage.isEmpty { try body(.usage(usage)) }
        usage.removeAll(keepingCapacity: true)
        rows.removeAll(keepingCapacity: true)
        outcomes.removeAll(keepingCapacity: true)
        bytes = 0
    }
}

/// Reads chunks for a caller: an error of the caller's body is rethrown as it is, while a failure of the store, which may be
/// of the same type, is converted.
///
/// - Throws: what the body throws, `CancellationError`, and converted failures.
package func readChunks<Chunk>(
    for body: @escaping @Sendable (Chunk) throws -> Void, failure: (any Error) -> RecordStoreError,
    reading read: (@escaping @Sendable (Chunk) throws -> Void) async throws -> Void
) async throws {
    do {
        try await read { chunk in
            do {
                try body(chunk)
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
