import Dispatch
import RecordStore
import SyncModel
import Synchronization

/// A partition's snapshot as pieces that a task takes one by one, while the store's thread waits for it.
///
/// One piece at a time is in memory, however long its taker waits for other reads.
final class SnapshotPieces: Sendable {
    private enum Slot {
        case empty
        case piece(SnapshotChunk)
        case ended(Result<Void, any Error>)
    }

    private struct State {
        var slot = Slot.empty
        var taker: CheckedContinuation<Void, Never>?
        /// The end, while the last piece is not taken.
        var ending: Result<Void, any Error>?
        var isAbandoned = false
    }

    private let state = Mutex(State())
    /// Signalled when the store's thread may put the next piece.
    private let room = DispatchSemaphore(value: 1)

    /// Reads a partition of a store, handing each piece to a body.
    static func forEach(
        of store: some RecordReader, partition: Int, schemaOrdinal: Int, _ body: (SnapshotChunk) async throws -> Void
    ) async throws {
        let pieces = SnapshotPieces()
        let reading = Task {
            let result: Result<Void, any Error>
            do {
                try await store.snapshot(of: partition, schemaOrdinal: schemaOrdinal) { try pieces.put($0) }
                result = .success(())
            } catch {
                result = .failure(error)
            }
            pieces.end(result)
        }
        do {
            while let piece = try await pieces.next() { try await body(piece) }
        } catch {
            pieces.abandon()
            await reading.value
            throw error
        }
        await reading.value
    }

    /// Called on the store's thread, which waits until the piece before was taken.
    private func put(_ piece: SnapshotChunk) throws {
        room.wait()
        let taker = try state.withLock { state in
            if state.isAbandoned { throw CancellationError() }
            state.slot = .piece(piece)
            return state.taker.take()
        }
        taker?.resume()
    }

    private func end(_ result: Result<Void, any Error>) {
        // This task must not wait as the store's thread does: while the last piece is in the slot, the end stands by.
        let taker = state.withLock { state in
            if case .empty = state.slot { state.slot = .ended(result) } else { state.ending = result }
            return state.taker.take()
        }
        taker?.resume()
    }

    private func next() async throws -> SnapshotChunk? {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if case .empty = state.slot {
                    state.taker = continuation
                    return false
                }
                return true
            }
            if isReady { continuation.resume() }
        }
        let taken = state.withLock { state in
            defer {
                if case .piece = state.slot { state.slot = state.ending.take().map(Slot.ended) ?? .empty }
            }
            return state.slot
        }
        switch taken {
        case .empty: preconditionFailure("a taker is woken for something")
        case .ended(let result):
            try result.get()
            return nil
        case .piece(let piece):
            room.signal()
            return piece
        }
    }

    /// Lets the store's thread end its read.
    private func abandon() {
        state.withLock { $0.isAbandoned = true }
        room.signal()
    }
}
