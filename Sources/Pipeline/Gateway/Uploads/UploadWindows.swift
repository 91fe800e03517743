import AsyncPrimitives
import SyncModel
import Synchronization

/// Limits how many uploads of a caller wait until they can be pulled (I10): its window.
///
/// A partition orders uploads in the order of the log, so whatever a caller has in it delays all others that come later. How
/// much work an upload is shows only in how long it takes, so the window follows that: it grows while uploads are done soon, and shrinks
/// to one upload while they take longer than ``target``, not counting the time that uploads of other callers before them took. Uploads
/// beyond the window wait here, where they delay those of the same caller only.
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
        /// How many have a place, those included that are being appended.
        var places = 0
        /// When something could be pulled last, or began to wait for that.
        var progress = Duration.zero
        /// The caller of the last upload that passed, and since when only its uploads did.
        var last: (caller: SyncID, since: Duration)?

        func isStalled(_ now: Duration) -> Bool { places > 0 && now - progress >= patience }
    }

    private struct Waiter {
        let bytes: Int
        let admission: Promise<Admission>
    }

    private struct Caller {
        var window = UploadWindows.first
        var reduced: Duration?
        /// Uploads that are being appended or cannot be pulled yet.
        var uploads = 0
        var waiting: [Waiter] = []
        var waitingBytes = 0

        var isIdle: Bool { uploads == 0 && waiting.isEmpty }
    }

    private struct State {
        var partitions: [Partition]
        var callers: [SyncID: Caller] = [:]
        var waitingBytes = 0
    }

    private enum Admission {
        case admitted
        case late
        case cancelled
    }

    /// The window of a caller that has no upload.
    private static let first = 4
    /// The largest window, and how many uploads of a caller may wait.
    ///
    /// 64: with batches of 100 changes more than a partition orders within ``target``.
    private static let largest = 64
    /// How long an upload waits for a place, and how long nothing can be pulled in a partition before its windows no longer apply.
    ///
    /// 5 seconds: far above the time that the largest batch takes.
    private static let patience = Duration.seconds(5)
    /// Uploads of a partition that are tracked; as long as it has more, the others count no longer once they are durable.
    private static let maximumTracked = 16_384

    private let target: Duration
    private let maximumWaitingBytes: Int
    private let partitioning: Partitioning
    private let clock: GatewayClock
    private let state: Mutex<State>

    /// - Parameters:
    ///   - target: how long an upload may take until it can be pulled.
    ///   - maximumWaitingBytes: of all uploads that wait for a place; a caller may have as many as are free.
    init(partitions: Int, target: Duration, maximumWaitingBytes: Int, clock: GatewayClock) {
        self.target = target
        self.maximumWaitingBytes = maximumWaitingBytes
        self.clock = clock
        partitioning = Partitioning(count: partitions)
        state = Mutex(State(partitions: Array(repeating: Partition(), count: partitions)))
    }

    /// Takes a place in a caller's window, waiting for one if there is none; each needs one ``appended(_:of:)`` or ``failed(_:)``.
    ///
    /// - Parameter bytes: of the upload, which are held while it waits.
    /// - Returns: whether it had to wait.
    /// - Throws: `rate_limited` if it has none in five seconds, unless nothing at all could be pulled meanwhile; at once if too many wait.
    func enter(_ caller: SyncID, bytes: Int) async throws(Problem) -> Bool {
        let partition = partitioning.partition(of: caller)
        let now = clock.now()
        let waiter = Waiter(bytes: bytes, admission: Promise())
        let (isAdmitted, isQueued, others): (Bool, Bool, [Waiter]) = state.withLock { state in
            var entry = state.callers[caller] ?? Caller()
            defer { state.callers[caller] = entry }
            let isStalled = state.partitions[partition].isStalled(now)
            let others = isStalled ? admit(entry.waiting.count, &entry, &state, partition, now) : []
            if isStalled || entry.uploads < entry.window {
                take(1, &entry, &state, partition, now)
                return (true, false, others)
            }
            let free = maximumWaitingBytes - state.waitingBytes
            guard entry.waiting.count < Self.largest, entry.waitingBytes + bytes <= free else {
                return (false, false, others)
            }
            entry.waiting.append(waiter)
            entry.waitingBytes += bytes
            state.waitingBytes += bytes
            return (false, true, others)
        }
        fulfil(others, of: caller)
        if isAdmitted { return false }
        guard isQueued else { throw Self.tooMany }
        let admission = await waiter.admission.value(late: .late, cancelled: .cancelled) { [clock] in
            try await clock.sleep(now + Self.patience)
        }
        if admission == .admitted { return true }
        let isLateAdmitted = state.withLock { state in
            guard var entry = state.callers[caller] else { return false }
            if let index = entry.waiting.firstIndex(where: { $0.admission === waiter.admission }) {
                entry.waiting.remove(at: index)
                entry.waitingBytes -= bytes
                state.waitingBytes -= bytes
            }
            let now = clock.now()
            let isLateAdmitted = admission == .late && state.partitions[partition].isStalled(now)
            if isLateAdmitted { take(1, &entry, &state, partition, now) }
            state.callers[caller] = entry.isIdle ? nil : entry
            return isLateAdmitted
        }
        if isLateAdmitted { return true }
        throw admission == .cancelled ? Problem(.notReady, "the request was cancelled") : Self.tooMany
    }

    private static var tooMany: Problem {
        Problem(
            .rateLimited, "earlier uploads of this caller cannot be pulled yet, and its others wait for them",
            retryAfter: 1)
    }

    /// An upload that has a place is durable; the place is free once the upload can be pulled.
    func appended(_ upload: UploadReference, of caller: SyncID) {
        let now = clock.now()
        let admitted: [Waiter] = state.withLock { state in
            // The fan-out can report the upload before the gateway does.
            guard upload.offset > state.partitions[upload.partition].passed,
                state.partitions[upload.partition].uploads.count < Self.maximumTracked
            else { return leave(caller, &state, now) }
            // Appends end nearly in the order of their offsets.
            let before = state.partitions[upload.partition].uploads.lastIndex { $0.offset < upload.offset }
            state.partitions[upload.partition].uploads.insert(
                Upload(caller: caller, offset: upload.offset, appended: now), at: before.map { $0 + 1 } ?? 0)
            return []
        }
        fulfil(admitted, of: caller)
    }

    /// An upload that has a place was not appended.
    func failed(_ caller: SyncID) {
        let now = clock.now()
        fulfil(state.withLock { leave(caller, &$0, now) }, of: caller)
    }

    /// All uploads of the partition up to this one can be pulled.
    func passed(_ upload: UploadReference) {
        let now = clock.now()
        let admitted: [(SyncID, [Waiter])] = state.withLock { state in
            guard upload.offset > state.partitions[upload.partition].passed else { return [] }
            let progress = state.partitions[upload.partition].progress
            state.partitions[upload.partition].passed = upload.offset
            state.partitions[upload.partition].progress = now
            let count = state.partitions[upload.partition].uploads.prefix { $0.offset <= upload.offset }.count
            let ended = Array(state.partitions[upload.partition].uploads[..<count])
            state.partitions[upload.partition].uploads.removeFirst(count)
            let last = state.partitions[upload.partition].last
            // Uploads that passed together are not distinguished.
            let since = ended.map { last?.caller == $0.caller ? last?.since ?? progress : progress }
            if let newest = ended.last, let since = since.last {
                state.partitions[upload.partition].last = (newest.caller, since)
            }
            return zip(ended, since).map { upload, since in
                adapt(upload.caller, to: now - max(upload.appended, since), at: now, &state)
                return (upload.caller, leave(upload.caller, &state, now))
            }
        }
        for (caller, waiters) in admitted { fulfil(waiters, of: caller) }
    }

    /// Ingest refused the record as a whole: there is nothing to pull.
    func refused(_ upload: UploadReference) {
        let now = clock.now()
        let admitted: (SyncID, [Waiter])? = state.withLock { state in
            let index = state.partitions[upload.partition].uploads.firstIndex { $0.offset == upload.offset }
            guard let index else { return nil }
            let caller = state.partitions[upload.partition].uploads.remove(at: index).caller
            return (caller, leave(caller, &state, now))
        }
        if let (caller, waiters) = admitted { fulfil(waiters, of: caller) }
    }

    // MARK: Places

    /// Adapts a window to an upload that can be pulled.
    private func adapt(_ caller: SyncID, to duration: Duration, at now: Duration, _ state: inout State) {
        guard var entry = state.callers[caller] else { return }
        if duration <= target / 2 {
            entry.window = min(Self.largest, entry.window + 1)
        } else if duration > target, entry.reduced.map({ now - $0 > target }) ?? true {
            // Once for those that took long at the same time.
            entry.window = max(1, entry.window / 2)
            entry.reduced = now
        }
        state.callers[caller] = entry
    }

    private func take(
        _ count: Int, _ entry: inout Caller, _ state: inout State, _ partition: Int, _ now: Duration
    ) {
        if state.partitions[partition].places == 0 { state.partitions[partition].progress = now }
        state.partitions[partition].places += count
        entry.uploads += count
    }

    /// Gives places to the first of those that wait.
    private func admit(
        _ count: Int, _ entry: inout Caller, _ state: inout State, _ partition: Int, _ now: Duration
    ) -> [Waiter] {
        let admitted = Array(entry.waiting.prefix(count))
        entry.waiting.removeFirst(admitted.count)
        let bytes = admitted.reduce(0) { $0 + $1.bytes }
        entry.waitingBytes -= bytes
        state.waitingBytes -= bytes
        take(admitted.count, &entry, &state, partition, now)
        return admitted
    }

    /// Frees a place, and gives free ones to those that wait.
    private func leave(_ caller: SyncID, _ state: inout State, _ now: Duration) -> [Waiter] {
        let partition = partitioning.partition(of: caller)
        guard var entry = state.callers[caller] else { return [] }
        entry.uploads -= 1
        state.partitions[partition].places -= 1
        let admitted = admit(max(0, entry.window - entry.uploads), &entry, &state, partition, now)
        state.callers[caller] = entry.isIdle ? nil : entry
        return admitted
    }

    private func fulfil(_ admitted: [Waiter], of caller: SyncID) {
        // One that has left meanwhile leaves its place to the next.
        for waiter in admitted where !waiter.admission.fulfil(.admitted) { failed(caller) }
    }
}
