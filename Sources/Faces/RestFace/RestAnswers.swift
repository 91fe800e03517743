import Gateway
import SyncModel
import Synchronization

/// Which downloads of devices were answered as a whole, and what shows that a device has the answer: an upload to the same table that
/// followed, or the `Ts` of the answer's newest row.
///
/// A client that follows the document uploads to a table after it has stored what it downloaded of it; where a download fails, its sync
/// ends. So when a device has the `Ts` of an upload that was sent after an answer, it has that answer. Of two downloads at the same time
/// it gave up the one that began first. In memory only: what is forgotten is sent again. Where there are several gateways, one of them has the
/// answer, and all know in which of them the newest download began.
final class RestAnswers: Sendable {
    private struct Key: Hashable {
        let device: Device
        let table: Int
    }

    /// A download, in the order in which they began.
    struct Download: Sendable, Comparable {
        fileprivate let number: UInt64
        /// What the registry of devices had for the gateway in which it began; 0 where there is one gateway.
        var mark: Int64 = 0

        static func == (one: Download, other: Download) -> Bool { one.number == other.number }

        static func < (one: Download, other: Download) -> Bool { one.number < other.number }
    }

    private struct Answer {
        let download: Download
        /// The device has everything up to here if it has the answer.
        let end: TimeStamp
        let newest: NewestRows
        var isFollowed = false
    }

    /// The newest rows of other devices in an answer; zero where there is none.
    struct NewestRows {
        /// Also of those that are deleted.
        private(set) var ofAll = TimeStamp.zero
        /// A device removes deleted rows at the end of a sync, and then names this one.
        private(set) var ofLive = TimeStamp.zero

        mutating func add(_ row: FaceRow) {
            guard row.writer != .device else { return }
            ofAll = row.timeStamp
            if !row.isDeleted { ofLive = row.timeStamp }
        }
    }

    /// About 300 bytes each.
    private static let standardCount = 50_000
    /// The part of all that a caller may have before its own are forgotten first, and the part of the others that is then.
    private static let share = 10

    private let maximumCount: Int

    private let answers = Mutex<[Key: Answer]>([:])
    private let begun = Atomic<UInt64>(0)

    /// - Parameter maximumCount: beyond it, some of the oldest are forgotten.
    init(maximumCount: Int = RestAnswers.standardCount) { self.maximumCount = maximumCount }

    /// A download begins.
    func begin() -> Download { Download(number: begun.add(1, ordering: .relaxed).newValue) }

    /// The whole answer to a download was made; without effect after that of one which began later.
    ///
    /// - Parameter newest: of its rows.
    func answered(
        _ download: Download, of device: Device, _ table: Int, upTo end: TimeStamp, newest: NewestRows = NewestRows()
    ) {
        answers.withLock { answers in
            let key = Key(device: device, table: table)
            if answers.count >= maximumCount, answers[key] == nil { Self.makeSpace(&answers) }
            if let later = answers[key]?.download, later > download { return }
            answers[key] = Answer(download: download, end: end, newest: newest)
        }
    }

    /// Forgets the oldest half of what the caller with the most has, so that made-up devices do not displace those of others;
    /// where no caller has much, the oldest of all.
    private static func makeSpace(_ answers: inout [Key: Answer]) {
        var counts: [SyncID: Int] = [:]
        for key in answers.keys { counts[key.device.caller, default: 0] += 1 }
        let most = counts.max { $0.value < $1.value }.flatMap { $0.value > answers.count / share ? $0 : nil }
        let candidates = answers.filter { most == nil || $0.key.device.caller == most?.key }
        let count = max(1, most.map { $0.value / 2 } ?? answers.count / share)
        for (key, _) in candidates.sorted(by: { $0.value.download < $1.value.download }).prefix(count) {
            answers[key] = nil
        }
    }

    /// An upload of the device was stored, or is a conflict.
    func uploaded(_ device: Device, _ table: Int) {
        answers.withLock { $0[Key(device: device, table: table)]?.isFollowed = true }
    }

    /// Up to where a device that has this `Ts` has everything; zero where nothing is known.
    ///
    /// - Parameter mark: of the newest download: another gateway may have answered it.
    func received(_ device: Device, _ table: Int, ts: TimeStamp, mark: Int64) -> TimeStamp {
        answers.withLock { answers in
            guard let answer = answers[Key(device: device, table: table)], answer.isFollowed, ts > answer.end,
                answer.download.mark == mark
            else { return .zero }
            return answer.end
        }
    }

    /// The mark of the last answer.
    func mark(of device: Device, _ table: Int) -> Int64? {
        answers.withLock { $0[Key(device: device, table: table)]?.download.mark }
    }

    /// Whether a `Ts` is that of an answer's newest row, wherever that row is by now.
    func isNewest(_ ts: TimeStamp, _ device: Device, _ table: Int) -> Bool {
        answers.withLock { answers in
            guard ts > .zero, let answer = answers[Key(device: device, table: table)] else { return false }
            return ts == answer.newest.ofAll || ts == answer.newest.ofLive
        }
    }
}
