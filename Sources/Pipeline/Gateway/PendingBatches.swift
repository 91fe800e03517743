import SyncModel
import Synchronization

/// The numbered batches that this gateway appended and whose outcome it has not seen: what `GET /v1/batches` knows of.
final class PendingBatches: Sendable {
    private struct Name: Hashable {
        let device: Device
        let batch: Int64
    }

    private struct Entry {
        let upload: UploadReference
        let place: Int
        let appendedAt: Duration
    }

    private struct State {
        var entries: [Name: Entry] = [:]
        /// By place, which grows with every batch: the oldest goes first.
        var order: [Int: Name] = [:]
        var oldest = 0
        var next = 0
    }

    /// Batches remembered; about 250 bytes each.
    private static let maximum = 16_384
    /// How long a batch is remembered: then its device is told to send it again, which is always safe.
    ///
    /// Much longer than ordering takes, so that no device asks for ever for an outcome that nobody keeps.
    private static let patience: Duration = .seconds(300)

    private let time: GatewayDeadline
    private let state = Mutex(State())

    init(time: GatewayDeadline) { self.time = time }

    /// Where a batch was appended, if it was here and lately.
    func upload(of batch: Int64, by device: Device) -> UploadReference? {
        let oldest = time.now() - Self.patience
        return state.withLock { $0.entries[Name(device: device, batch: batch)] }
            .flatMap { $0.appendedAt >= oldest ? $0.upload : nil }
    }

    /// A batch was appended, perhaps again.
    func insert(_ batch: Int64, of device: Device, at upload: UploadReference) {
        let name = Name(device: device, batch: batch)
        let now = time.now()
        state.withLock { state in
            if let earlier = state.entries[name] { state.order[earlier.place] = nil }
            state.entries[name] = Entry(upload: upload, place: state.next, appendedAt: now)
            state.order[state.next] = name
            state.next += 1
            // The oldest place moves over those removed meanwhile, two for each new one, so that no call has many to pass.
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

    /// The outcome of a batch was seen.
    func remove(_ batch: Int64?, of device: Device) {
        guard let batch else { return }
        state.withLock { state in
            guard let entry = state.entries.removeValue(forKey: Name(device: device, batch: batch)) else { return }
            state.order[entry.place] = nil
        }
    }
}
