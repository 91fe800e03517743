import Dispatch
import RecordStore
import SyncModel
import Synchronization

/// Passes what a store reads of a partition chunk by chunk from the store's thread, which waits, to a task.
///
/// One chunk at a time is in memory, however long the task waits for other reads.
final class StoreChunks<Chunk: Sendable>: Sendable {
    private enum Slot {
        case empty
        case chunk(Chunk)
        case ended(Result<Void, any Error>)
    }

    private struct State {
        var slot = Slot.empty
        var consumer: CheckedContinuation<Void, Never>?
        /// The end, until the last chunk is consumed.
        var ending: Result<Void, any Error>?
        var isAbandoned = false
    }

    private let state = Mutex(State())
    /// Signalled when the store's thread may put the next chunk.
    ///
    /// It begins with 0, since libdispatch traps where one is freed with a lower value than its first, as after a read that was abandoned.
    private let isFree = DispatchSemaphore(value: 0)

    private init() { isFree.signal() }

    /// - Parameter read: reads all chunks.
    fileprivate static func forEach(
        _ read: @escaping @Sendable (@escaping @Sendable (Chunk) throws -> Void) async throws -> Void,
        _ body: (Chunk) async throws -> Void
    ) async throws {
        let chunks = StoreChunks()
        let reading = Task {
            let result: Result<Void, any Error>
            do {
                try await read { try chunks.put($0) }
                result = .success(())
            } catch {
                result = .failure(error)
            }
            chunks.end(result)
        }
        do {
            while let chunk = try await chunks.next() { try await body(chunk) }
        } catch {
            chunks.abandon()
            await reading.value
            throw error
        }
        await reading.value
    }

    /// Called on the store's thread; waits until the chunk before is consumed.
    private func put(_ chunk: Chunk) throws {
        isFree.wait()
        let consumer = try state.withLock { state in
            if state.isAbandoned { throw CancellationError() }
            state.slot = .chunk(chunk)
            return state.consumer.take()
        }
        consumer?.resume()
    }

    private func end(_ result: Result<Void, any Error>) {
        // A task must not block: while the last chunk is in the slot, the end waits in `ending`.
        let consumer = state.withLock { state in
            if case .empty = state.slot { state.slot = .ended(result) } else { state.ending = result }
            return state.consumer.take()
        }
        consumer?.resume()
    }

    private func next() async throws -> Chunk? {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if case .empty = state.slot {
                    state.consumer = continuation
                    return false
                }
                return true
            }
            if isReady { continuation.resume() }
        }
        let taken = state.withLock { state in
            defer {
                if case .chunk = state.slot { state.slot = state.ending.take().map(Slot.ended) ?? .empty }
            }
            return state.slot
        }
        switch taken {
        case .empty: preconditionFailure("a consumer is woken with a chunk or the end")
        case .ended(let result):
            try result.get()
            return nil
        case .chunk(let chunk):
            isFree.signal()
            return chunk
        }
    }

    /// Ends the read of the store's thread.
    private func abandon() {
        state.withLock { $0.isAbandoned = true }
        isFree.signal()
    }
}

extension RecordReader {
    /// Calls a body with each chunk of a snapshot of a partition.
    func forEachChunk(
        of partition: Int, schemaOrdinal: Int, _ body: (SnapshotChunk) async throws -> Void
    ) async throws {
        try await StoreChunks.forEach(
            { put in try await snapshot(of: partition, schemaOrdinal: schemaOrdinal, put) }, body)
    }

    /// Calls a body with all applied changes of a partition, some at a time.
    func forEachAppliedChange(
        of partition: Int, _ body: ([StoredAppliedChange]) async throws -> Void
    ) async throws {
        try await StoreChunks.forEach({ put in try await appliedChanges(of: partition, put) }, body)
    }
}
