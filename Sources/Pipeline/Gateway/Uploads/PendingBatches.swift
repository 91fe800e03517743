import SyncModel
import Synchronization

/// The uploads of numbered batches whose outcome this gateway has not sent yet, for `GET /v1/batches/{batch}`.
final class PendingBatches: Sendable {
    private struct Key: Hashable {
        let device: Device
        let batch: Int64
    }

    private struct Entry {
        let upload: UploadReference
        let sequence: Int
        let appendedAt: Duration
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        /// By sequence number; the oldest is removed first.
        var order: [Int: Key] = [:]
        var oldest = 0
        var next = 0
    }

    /// About 250 bytes each.
    private static let maximum = 16_384
    /// How long an entry is valid; afterwards the device must send its batch again, which is always safe.
    ///
    /// Much longer than ordering takes, but limited, so that no device polls permanently for an outcome that is not
    /// kept.
    private static let lifetime: Duration = .seconds(300)

    private let clock: GatewayClock
    private let state = Mutex(State())

    init(clock: GatewayClock) { self.clock = clock }

    /// The last upload of a batch through this gateway; `nil` if there is none within ``lifetime``.
    func upload(of batch: Int64, by device: Device) -> UploadReference? {
        let oldest = clock.now() - Self.lifetime
        return state.withLock { $0.entries[Key(device: device, batch: batch)] }
            .flatMap { $0.appendedAt >= oldest ? $0.upload : nil }
    }

    func insert(_ batch: Int64, of device: Device, at upload: UploadReference) {
        let key = Key(device: device, batch: batch)
        let now = clock.now()
        state.withLock { state in
            if let earlier = state.entries[key] { state.order[earlier.sequence] = nil }
            state.entries[key] = Entry(upload: upload, sequence: state.next, appendedAt: now)
            state.order[state.next] = key
            state.next += 1
            // Skips removed entries, at most two with each insertion, so that no call has to skip many.
            for _ in 0..<2 where state.oldest < state.next {
                guard let oldest = state.order[state.oldest] else {
                    state.oldest += 1
                    continue
                }
                guard state.entries.count > Self.maximum else { break }
                state.order[state.oldest] = nil
                state.entries[oldest] = nil
                state.oldest += 1
            }
        }
    }

    func remove(_ batch: Int64?, of device: Device) {
        guard let batch else { return }
        state.withLock { state in
            guard let entry = state.entries.removeValue(forKey: Key(device: device, batch: batch)) else { return }
            state.order[entry.sequence] = nil
        }
    }
}
