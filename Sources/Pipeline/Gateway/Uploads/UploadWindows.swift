import AsyncPrimitives
import SyncModel
import Synchronization

/// Limits how many uploads of a caller wait until they can be pulled (I10): its window.
///
/// A partition orders uploads in the order of the log, so whatever a caller has in it delays all others that come later. How
/// much work an upload is shows only in how long it takes, so the window follows that: it grows while uploads can be pulled
/// soon, and shrinks to one upload while they take longer than ``target``. Uploads beyond the window wait here, where they delay
/// those of the same caller only.
///
/// A partition in which nothing can be pulled for a while has another problem than the amount of work; then windows do not apply,
/// and uploads are accepted as long as ``UploadBacklog`` accepts them.
final class UploadWindows: Sendable {
    private struct Upload {
        let caller: SyncID
        let offset: Int64
        let appended: Duration
    }

    private struct Partition {
        /// In the order of their offsets.
        var uploads: [Upload] = []
        /// All up to this offset can be pulled.
        var passed: Int64 = -1
        /// When something could be pulled last, or began to wait for that.
        var progress = Duration.zero
    }

    private struct Caller {
        var window = UploadWindows.first
        var reduced: Duration?
        /// Uploads that are being appended or cannot be pulled yet.
        var uploads = 0
        /// Those that wait, some of which may have left; as many as requests may wait.
        var waiting: [Promise<Admission>] = []

        var hasPlace: Bool { uploads < window }
    }

    private struct State {
        var partitions: [Partition]
        var callers: [SyncID: Caller] = [:]
    }

    private enum Admission {
        case admitted
        case late
        case cancelled
    }

    /// Who has got a place.
    private struct Admitted {
        let caller: SyncID
        let promise: Promise<Admission>
    }

    /// The window of a caller that has no upload.
    private static let first = 4
    /// The largest window.
    ///
    /// 64: with batches of 100 changes more than a partition orders within ``target``.
    private static let largest = 64
    /// How long an upload waits for a place, and how long nothing can be pulled in a partition before its windows no longer apply.
    ///
    /// 5 seconds: far above the time that the largest batch takes.
    private static let patience = Duration.seconds(5)
    /// Uploads of a partition that are tracked; as long as it has more, the others count no longer once they are durable.
    private static let maximumTracked = 16_384

    /// How long an upload may take until it can be pulled.
    private let target: Duration
    private let clock: GatewayClock
    private let state: Mutex<State>

    init(partitions: Int, target: Duration, clock: GatewayClock) {
        self.target = target
        self.clock = clock
        state = Mutex(State(partitions: Array(repeating: Partition(), count: partitions)))
    }

    /// Takes a place in a caller's window, waiting for one if there is none; each needs one ``appended(_:of:)`` or ``failed(_:)``.
    ///
    /// - Returns: whether it had to wait.
    /// - Throws: `rate_limited` if it has none in five seconds, unless nothing at all could be pulled meanwhile.
    func enter(_ caller: SyncID, partition: Int) async throws(Problem) -> Bool {
        let admission = Promise<Admission>()
        let now = clock.now()
        let isAdmitted = state.withLock { state in
            let isStalled = Self.isStalled(state.partitions[partition], now)
            return update(caller, in: &state) { entry in
                guard entry.hasPlace || isStalled else {
                    entry.waiting.append(admission)
                    return false
                }
                entry.uploads += 1
                return true
            }
        }
        if isAdmitted { return false }
        let admitted = await turn(admission, until: now + Self.patience)
        if admitted == .admitted { return true }
        let isLateAdmitted = state.withLock { state in
            let isStalled = Self.isStalled(state.partitions[partition], clock.now())
            return update(caller, in: &state) { entry in
                entry.waiting.removeAll { $0 === admission }
                guard admitted == .late, isStalled else { return false }
                entry.uploads += 1
                return true
            }
        }
        if isLateAdmitted { return true }
        if admitted == .cancelled { throw Problem(.notReady, "the request was cancelled") }
        throw Problem(
            .rateLimited, "earlier uploads of this caller cannot be pulled yet, and others of it wait for them",
            retryAfter: 1)
    }

    private func turn(_ admission: Promise<Admission>, until deadline: Duration) async -> Admission {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [clock] in
                // Cancelled when the turn comes first.
                do { try await clock.sleep(deadline) } catch { return }
                admission.fulfil(.late)
            }
            let result = await admission.value(cancelled: .cancelled)
            group.cancelAll()
            return result
        }
    }

    /// An upload that has a place is durable; the place is free once the upload can be pulled.
    func appended(_ upload: UploadReference, of caller: SyncID) {
        let now = clock.now()
        let admitted: [Admitted] = state.withLock { state in
            let partition = state.partitions[upload.partition]
            // The fan-out can report the upload before the gateway does.
            guard upload.offset > partition.passed, partition.uploads.count < Self.maximumTracked else {
                return leave(caller, &state)
            }
            if partition.uploads.isEmpty { state.partitions[upload.partition].progress = now }
            // Appends end nearly in the order of their offsets.
            let index = (partition.uploads.lastIndex { $0.offset < upload.offset } ?? -1) + 1
            state.partitions[upload.partition].uploads.insert(
                Upload(caller: caller, offset: upload.offset, appended: now), at: index)
            return []
        }
        fulfil(admitted)
    }

    /// An upload that has a place was not appended.
    func failed(_ caller: SyncID) { fulfil(state.withLock { leave(caller, &$0) }) }

    /// All uploads of the partition up to this one can be pulled.
    func passed(_ upload: UploadReference) {
        let now = clock.now()
        let admitted: [Admitted] = state.withLock { state in
            guard upload.offset > state.partitions[upload.partition].passed else { return [] }
            state.partitions[upload.partition].passed = upload.offset
            state.partitions[upload.partition].progress = now
            let ended = state.partitions[upload.partition].uploads.prefix { $0.offset <= upload.offset }
            state.partitions[upload.partition].uploads.removeFirst(ended.count)
            return ended.flatMap { leave($0.caller, took: now - $0.appended, at: now, &state) }
        }
        fulfil(admitted)
    }

    /// Ingest refused the record as a whole: there is nothing to pull.
    func refused(_ upload: UploadReference) {
        let admitted: [Admitted] = state.withLock { state in
            let index = state.partitions[upload.partition].uploads.firstIndex { $0.offset == upload.offset }
            guard let index else { return [] }
            return leave(state.partitions[upload.partition].uploads.remove(at: index).caller, &state)
        }
        fulfil(admitted)
    }

    /// Adapts the window to an upload that can be pulled.
    private func leave(
        _ caller: SyncID, took duration: Duration, at now: Duration, _ state: inout State
    ) -> [Admitted] {
        update(caller, in: &state) { entry in
            if duration <= target / 2 {
                entry.window = min(Self.largest, entry.window + 1)
            } else if duration > target, entry.reduced.map({ now - $0 > target }) ?? true {
                // Once for those that took long at the same time.
                entry.window = max(1, entry.window / 2)
                entry.reduced = now
            }
        }
        return leave(caller, &state)
    }

    /// Frees a place, and gives free ones to those that wait.
    private func leave(_ caller: SyncID, _ state: inout State) -> [Admitted] {
        update(caller, in: &state) { entry in
            entry.uploads -= 1
            let free = min(entry.waiting.count, max(0, entry.window - entry.uploads))
            entry.uploads += free
            defer { entry.waiting.removeFirst(free) }
            return entry.waiting.prefix(free).map { Admitted(caller: caller, promise: $0) }
        }
    }

    /// Changes a caller's entry, which exists while it has uploads or some wait.
    private func update<Result>(
        _ caller: SyncID, in state: inout State, _ body: (inout Caller) -> Result
    ) -> Result {
        var entry = state.callers[caller] ?? Caller()
        let result = body(&entry)
        state.callers[caller] = entry.uploads > 0 || !entry.waiting.isEmpty ? entry : nil
        return result
    }

    private func fulfil(_ admitted: [Admitted]) {
        // One that has left meanwhile leaves its place to the next.
        for one in admitted where !one.promise.fulfil(.admitted) { failed(one.caller) }
    }

    private static func isStalled(_ partition: Partition, _ now: Duration) -> Bool {
        !partition.uploads.isEmpty && now - partition.progress >= patience
    }
}
