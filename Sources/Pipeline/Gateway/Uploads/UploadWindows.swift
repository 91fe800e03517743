import AsyncPrimitives
import FanOutLink
import SyncModel
import Synchronization

/// Limits how many uploads of a caller wait until they can be pulled (I10): its window.
///
/// A partition orders uploads in the order of the log, so whatever a caller has in it delays all others that come later; this is true of
/// the caller's own partition as of those of other owners whose rows it writes. How much work an upload is shows only in how long it takes,
/// so the window follows that: it grows while uploads are done soon, and shrinks to one upload while they take more than ``target`` longer
/// than their way through the stages, not counting the time that uploads of other callers before them took. While the most expensive of those
/// lately would take longer than ``target`` together, it is smaller: what others wait for is that time, whatever a caller mixes with expensive
/// uploads. Uploads beyond the window wait here, where they delay those of the same caller only.
///
/// A stream that applies nothing for a while has another problem than the amount of work; then the window of each caller whose uploads
/// wait for it is the largest, and uploads are accepted as long as ``UploadBacklog`` accepts them.
final class UploadWindows: Sendable {
    private struct State {
        /// Of the uploads that are being appended or cannot be pulled yet.
        var places: UploadPlaces
        /// Those that have places or wait, and those that are idle.
        var callers: [SyncID: UploadCaller] = [:]
        var idleCallers = 0
        var waitingBytes = 0
    }

    /// How long an upload waits for a place, how long a stream may apply nothing before the windows are the largest, and how long the
    /// window of a caller without uploads is remembered.
    ///
    /// 5 seconds: far above the time between two pieces of the largest result.
    private static let patience = Duration.seconds(5)
    /// The number of callers without uploads whose windows are remembered.
    private static let mostIdle = 10_000

    private let target: Duration
    private let maximumWaitingBytes: Int
    private let partitioning: Partitioning
    private let clock: GatewayClock
    private let touched: @Sendable (StreamReport.LargePart) -> Void
    private let state: Mutex<State>

    /// - Parameters:
    ///   - target: how long an upload may wait for others of its caller.
    ///   - maximumWaitingBytes: of all uploads that wait for a place; a caller may have as many as are free.
    ///   - touched: called once with each large part that a stream reports, whichever gateway accepted its upload.
    init(
        partitions: Int, target: Duration, maximumWaitingBytes: Int, clock: GatewayClock,
        touched: @escaping @Sendable (StreamReport.LargePart) -> Void = { _ in }
    ) {
        self.target = target
        self.maximumWaitingBytes = maximumWaitingBytes
        self.clock = clock
        self.touched = touched
        partitioning = Partitioning(count: partitions)
        state = Mutex(State(places: UploadPlaces(partitions: partitions, patience: Self.patience)))
    }

    /// Takes a place in a caller's window, waiting for one if there is none; each needs one ``appended(_:of:naming:)`` or ``failed(_:)``.
    ///
    /// - Parameter bytes: of the upload, which are held while it waits.
    /// - Returns: whether it had to wait.
    /// - Throws: `rate_limited` if it has none in five seconds; at once if too many wait.
    func enter(_ caller: SyncID, bytes: Int) async throws(Problem) -> Bool {
        let now = clock.now()
        let (isAdmitted, queued, others): (Bool, Promise<UploadCaller.Admission>?, [UploadCaller.Waiter]) =
            state.withLock { state in
                let entry = entry(of: caller, &state)
                if entry.begin(at: now, forgettingAfter: Self.patience) { state.idleCallers -= 1 }
                // Those that wait come first.
                let others = admit(entry, &state, now)
                if isFree(entry, state, now) {
                    state.places.take(in: entry.partition, for: entry, at: now)
                    return (true, nil, others)
                }
                let free = maximumWaitingBytes - state.waitingBytes
                guard entry.waiting.count < UploadCaller.largest, entry.waitingBytes + bytes <= free else {
                    return (false, nil, others)
                }
                let admission = Promise<UploadCaller.Admission>()
                entry.waiting.append(UploadCaller.Waiter(bytes: bytes, admission: admission))
                entry.waitingBytes += bytes
                state.waitingBytes += bytes
                return (false, admission, others)
            }
        fulfil(others, of: caller)
        if isAdmitted { return false }
        guard let queued else { throw Self.tooMany }
        let admission = await queued.value(late: .late, cancelled: .cancelled) { [clock] in
            try await clock.sleep(now + Self.patience)
        }
        if admission == .admitted { return true }
        let isLateAdmitted = state.withLock { state in
            guard let entry = state.callers[caller] else { return false }
            if let index = entry.waiting.firstIndex(where: { $0.admission === queued }) {
                entry.waiting.remove(at: index)
                entry.waitingBytes -= bytes
                state.waitingBytes -= bytes
            }
            let now = clock.now()
            let isLateAdmitted = admission == .late && isFree(entry, state, now)
            if isLateAdmitted {
                // It may have become idle in between.
                if entry.begin(at: now, forgettingAfter: Self.patience) { state.idleCallers -= 1 }
                state.places.take(in: entry.partition, for: entry, at: now)
            }
            rememberIfIdle(entry, &state, now)
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
    ///
    /// - Parameter others: the other partitions whose owners it names.
    func appended(_ upload: UploadReference, of caller: SyncID, naming others: Set<Int> = []) {
        let now = clock.now()
        let admitted: [UploadCaller.Waiter] = state.withLock { state in
            let entry = entry(of: caller, &state)
            let upload = UploadPlaces.Upload(upload, of: entry, appended: now, others: others.sorted())
            return state.places.appended(upload, at: now) ? [] : freed(entry, &state, now)
        }
        fulfil(admitted, of: caller)
    }

    /// An upload that has a place was not appended.
    func failed(_ caller: SyncID) {
        let now = clock.now()
        let admitted = state.withLock { state in
            let entry = entry(of: caller, &state)
            state.places.leave(entry.partition, of: entry)
            return freed(entry, &state, now)
        }
        fulfil(admitted, of: caller)
    }

    /// A stream has applied something.
    func passed(_ report: StreamReport) {
        let now = clock.now()
        let (parts, admitted): ([StreamReport.LargePart], [(SyncID, [UploadCaller.Waiter])]) = state.withLock { state in
            let parts = state.places.newParts(of: report)
            let ended = state.places.report(report, at: now)
            for upload in ended { upload.caller.adapt(to: upload, target, at: now) }
            return (parts, ended.map { ($0.caller.id, freed($0.caller, &state, now)) })
        }
        // Before those that waited continue, whose tokens these may have taken.
        for part in parts { touched(part) }
        for (caller, waiters) in admitted { fulfil(waiters, of: caller) }
    }

    /// Ingest refused the record as a whole: there is nothing to pull.
    func refused(_ upload: UploadReference) {
        let now = clock.now()
        let admitted: (SyncID, [UploadCaller.Waiter])? = state.withLock { state in
            state.places.refused(upload).map { ($0.id, freed($0, &state, now)) }
        }
        if let (caller, waiters) = admitted { fulfil(waiters, of: caller) }
    }

    // MARK: Places

    private func entry(of caller: SyncID, _ state: inout State) -> UploadCaller {
        if let known = state.callers[caller] { return known }
        let entry = UploadCaller(caller, partition: partitioning.partition(of: caller))
        state.callers[caller] = entry
        return entry
    }

    /// Whether a caller may have one more place.
    private func isFree(_ caller: UploadCaller, _ state: State, _ now: Duration) -> Bool {
        caller.isWithinWindow(target)
            || caller.places < UploadCaller.largest && state.places.isStalled(caller, at: now)
    }

    /// Gives free places to those that wait.
    private func admit(_ caller: UploadCaller, _ state: inout State, _ now: Duration) -> [UploadCaller.Waiter] {
        if caller.waiting.isEmpty { return [] }
        var admitted: [UploadCaller.Waiter] = []
        while admitted.count < caller.waiting.count, isFree(caller, state, now) {
            admitted.append(caller.waiting[admitted.count])
            state.places.take(in: caller.partition, for: caller, at: now)
        }
        caller.waiting.removeFirst(admitted.count)
        let bytes = admitted.reduce(0) { $0 + $1.bytes }
        caller.waitingBytes -= bytes
        state.waitingBytes -= bytes
        return admitted
    }

    /// A caller has a free place.
    private func freed(_ caller: UploadCaller, _ state: inout State, _ now: Duration) -> [UploadCaller.Waiter] {
        let admitted = admit(caller, &state, now)
        rememberIfIdle(caller, &state, now)
        return admitted
    }

    /// Keeps the window of a caller that has no upload, so that its next ones do not begin with the first window.
    ///
    /// Where too many are kept, those that were idle for long are removed, and all where these are few.
    private func rememberIfIdle(_ caller: UploadCaller, _ state: inout State, _ now: Duration) {
        guard caller.waiting.isEmpty, caller.places == 0, caller.idle == nil else { return }
        if state.idleCallers >= Self.mostIdle {
            remove(&state) { now - $0 >= Self.patience }
            if state.idleCallers > Self.mostIdle / 2 { remove(&state) { _ in true } }
        }
        caller.idle = now
        state.idleCallers += 1
    }

    private func remove(_ state: inout State, idleSince isRemoved: (Duration) -> Bool) {
        let before = state.callers.count
        state.callers = state.callers.filter { !($0.value.idle.map(isRemoved) ?? false) }
        state.idleCallers -= before - state.callers.count
    }

    private func fulfil(_ admitted: [UploadCaller.Waiter], of caller: SyncID) {
        // One that has left meanwhile leaves its place to the next.
        for waiter in admitted where !waiter.admission.fulfil(.admitted) { failed(caller) }
    }
}
