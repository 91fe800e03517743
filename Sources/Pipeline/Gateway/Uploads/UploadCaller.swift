import AsyncPrimitives
import SyncModel

/// A caller whose uploads cannot be pulled yet, wait for a place in its window, or could be pulled lately (I10): the window, and the
/// streams of its places.
///
/// Belongs to the state of ``UploadWindows``, under whose lock it is used.
final class UploadCaller {
    enum Admission {
        case admitted
        case late
        case cancelled
    }

    struct Waiter {
        let bytes: Int
        let admission: Promise<Admission>
    }

    /// The window of a caller that has had no upload for a while.
    private static let first = 4
    /// The largest window, and how many uploads of a caller may wait.
    ///
    /// 64: with batches of 100 changes more than a partition orders within the target.
    static let largest = 64

    let id: SyncID
    /// Its own.
    let partition: Int
    private var window = first
    private var reduced: Duration?
    /// How long a stream was busy with one of its uploads: the longest lately.
    private var cost = Duration.zero
    /// Since when it has no upload.
    var idle: Duration?
    var waiting: [Waiter] = []
    var waitingBytes = 0
    /// How many places it has, those included that are in other streams.
    private(set) var places = 0
    /// By stream, without its own partition's.
    private var placesElsewhere: [Int: Int] = [:]

    init(_ id: SyncID, partition: Int) {
        self.id = id
        self.partition = partition
    }

    // MARK: Places

    func take(in stream: Int) {
        places += 1
        if stream != partition { placesElsewhere[stream, default: 0] += 1 }
    }

    func leave(_ stream: Int) {
        places -= 1
        guard stream != partition, let count = placesElsewhere[stream] else { return }
        placesElsewhere[stream] = count == 1 ? nil : count - 1
    }

    /// Whether it has a place in one of these streams.
    func hasPlace(where isOne: (Int) -> Bool) -> Bool {
        let elsewhere = placesElsewhere.values.reduce(0, +)
        return places > elsewhere && isOne(partition) || elsewhere > 0 && placesElsewhere.keys.contains(where: isOne)
    }

    // MARK: Window

    /// Whether it may have one more place: the first, or one within its window that takes no longer than the target with the others.
    func isWithinWindow(_ target: Duration) -> Bool {
        places == 0 || places < window && cost * (places + 1) <= target
    }

    /// Adapts the window to an upload that can be pulled.
    func adapt(to ended: UploadPlaces.Ended, _ target: Duration, at now: Duration) {
        // An upload that costs little does not mean that the next one does.
        cost = max(min(ended.cost, target * 2), cost * 15 / 16)
        if ended.delay <= target / 2 {
            window = min(Self.largest, window + 1)
        } else if ended.delay > target, reduced.map({ now - $0 > target }) ?? true {
            // Once for those that took long at the same time.
            window = max(1, window / 2)
            reduced = now
        }
    }

    /// An upload begins; what was before a long time without any is forgotten.
    ///
    /// - Returns: whether it had none.
    func begin(at now: Duration, forgettingAfter limit: Duration) -> Bool {
        guard let idle else { return false }
        if now - idle >= limit { (window, reduced, cost) = (Self.first, nil, .zero) }
        self.idle = nil
        return true
    }
}
