import Dispatch
import RecordStore
import SyncModel
import Synchronization

/// Passes a partition's snapshot chunk by chunk from the store's thread, which waits, to a task.
///
/// One chunk at a time is in memory, however long the task waits for other reads.
final class SnapshotChunks: Sendable {
    private enum Slot {
        case empty
        case chunk(SnapshotChunk)
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
    private let isFree = DispatchSemaphore(value: 1)

    static func forEach(
        of store: some RecordReader, partition: Int, schemaOrdinal: Int, _ body: (SnapshotChunk) async throws -> Void
    ) async throws {
        let chunks = SnapshotChunks()
        let reading = Task {
            let result: Result<Void, any Error>
            do {
                try await store.snapshot(of: partition, schemaOrdinal: schemaOrdinal) { try chunks.put($0) }
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
    private func put(_ chunk: SnapshotChunk) throws {
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

    private func next() async throws -> SnapshotChunk? {
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
