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
    private struct Waiter {
        let bytes: Int
        let admission: Promise<Admission>
    }

    private struct Caller {
        var window = UploadWindows.first
        var reduced: Duration?
        /// How long a stream was busy with one of its uploads: the longest lately.
        var cost = Duration.zero
        /// Since when it has no upload, where the cost of those it had is remembered.
        var idle: Duration?
        var waiting: [Waiter] = []
        var waitingBytes = 0
    }

    private struct State {
        /// Of the uploads that are being appended or cannot be pulled yet.
        var places: UploadPlaces
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
    /// How long an upload waits for a place, how long a stream may apply nothing before the windows are the largest, and how long the
    /// cost of uploads is remembered of a caller that has none.
    ///
    /// 5 seconds: far above the time between two pieces of the largest result.
    private static let patience = Duration.seconds(5)
    /// The number of callers without uploads of whom it is remembered.
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
        let waiter = Waiter(bytes: bytes, admission: Promise())
        let (isAdmitted, isQueued, others): (Bool, Bool, [Waiter]) = state.withLock { state in
            var entry = state.callers[caller] ?? Caller()
            if entry.idle.map({ now - $0 >= Self.patience }) ?? false { entry = Caller() }
            entry.idle = nil
            defer { state.callers[caller] = entry }
            // Those that wait come first.
            let others = admit(caller, &entry, &state, now)
            if isFree(caller, entry, state, now) {
                state.places.take(in: partitioning.partition(of: caller), for: caller, at: now)
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
            let isLateAdmitted = admission == .late && isFree(caller, entry, state, now)
            if isLateAdmitted { state.places.take(in: partitioning.partition(of: caller), for: caller, at: now) }
            keep(entry, of: caller, &state, now)
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
        let admitted: [Waiter] = state.withLock { state in
            let upload = UploadPlaces.Upload(upload, of: caller, appended: now, others: others.sorted())
            return state.places.appended(upload, at: now) ? [] : freed(caller, &state, now)
        }
        fulfil(admitted, of: caller)
    }

    /// An upload that has a place was not appended.
    func failed(_ caller: SyncID) {
        let now = clock.now()
        let admitted = state.withLock { state in
            state.places.leave(partitioning.partition(of: caller), of: caller)
            return freed(caller, &state, now)
        }
        fulfil(admitted, of: caller)
    }

    /// A stream has applied something.
    func passed(_ report: StreamReport) {
        let now = clock.now()
        let (parts, admitted): ([StreamReport.LargePart], [(SyncID, [Waiter])]) = state.withLock { state in
            let parts = state.places.newParts(of: report)
            let ended = state.places.report(report, at: now)
            for upload in ended { adapt(upload, at: now, &state) }
            return (parts, ended.map { ($0.caller, freed($0.caller, &state, now)) })
        }
        // Before those that waited continue, whose tokens these may have taken.
        for part in parts { touched(part) }
        for (caller, waiters) in admitted { fulfil(waiters, of: caller) }
    }

    /// Ingest refused the record as a whole: there is nothing to pull.
    func refused(_ upload: UploadReference) {
        let now = clock.now()
        let admitted: (SyncID, [Waiter])? = state.withLock { state in
            state.places.refused(upload).map { ($0, freed($0, &state, now)) }
        }
        if let (caller, waiters) = admitted { fulfil(waiters, of: caller) }
    }

    // MARK: Places

    /// Adapts a window to an upload that can be pulled.
    private func adapt(_ ended: UploadPlaces.Ended, at now: Duration, _ state: inout State) {
        guard var entry = state.callers[ended.caller] else { return }
        // An upload that costs little does not mean that the next one does.
        entry.cost = max(min(ended.cost, target * 2), entry.cost * 15 / 16)
        if ended.delay <= target / 2 {
            entry.window = min(Self.largest, entry.window + 1)
        } else if ended.delay > target, entry.reduced.map({ now - $0 > target }) ?? true {
            // Once for those that took long at the same time.
            entry.window = max(1, entry.window / 2)
            entry.reduced = now
        }
        state.callers[ended.caller] = entry
    }

    /// Whether a caller may have one more place.
    private func isFree(_ caller: SyncID, _ entry: Caller, _ state: State, _ now: Duration) -> Bool {
        let count = state.places.count(of: caller)
        let isWithin = count == 0 || count < entry.window && entry.cost * (count + 1) <= target
        return isWithin || count < Self.largest && state.places.isStalled(caller, at: now)
    }

    /// Gives free places to those that wait.
    private func admit(
        _ caller: SyncID, _ entry: inout Caller, _ state: inout State, _ now: Duration
    ) -> [Waiter] {
        var admitted: [Waiter] = []
        while admitted.count < entry.waiting.count, isFree(caller, entry, state, now) {
            admitted.append(entry.waiting[admitted.count])
            state.places.take(in: partitioning.partition(of: caller), for: caller, at: now)
        }
        entry.waiting.removeFirst(admitted.count)
        let bytes = admitted.reduce(0) { $0 + $1.bytes }
        entry.waitingBytes -= bytes
        state.waitingBytes -= bytes
        return admitted
    }

    /// A caller has a free place.
    private func freed(_ caller: SyncID, _ state: inout State, _ now: Duration) -> [Waiter] {
        guard var entry = state.callers[caller] else { return [] }
        let admitted = admit(caller, &entry, &state, now)
        keep(entry, of: caller, &state, now)
        return admitted
    }

    /// Stores what is known of a caller; nothing where it has no upload, and had none whose cost limits its first ones.
    private func keep(_ entry: Caller, of caller: SyncID, _ state: inout State, _ now: Duration) {
        var entry = entry
        if entry.waiting.isEmpty, state.places.count(of: caller) == 0 {
            guard entry.cost * Self.first > target else {
                state.callers[caller] = nil
                return
            }
            if state.callers.count >= Self.mostIdle { state.callers = state.callers.filter { $0.value.idle == nil } }
            entry.idle = now
        }
        state.callers[caller] = entry
    }

    private func fulfil(_ admitted: [Waiter], of caller: SyncID) {
        // One that has left meanwhile leaves its place to the next.
        for waiter in admitted where !waiter.admission.fulfil(.admitted) { failed(caller) }
    }
}
