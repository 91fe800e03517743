import SyncModel
import Synchronization

/// The uploads that cannot be pulled yet, and since when the oldest of them waits: how far the pipeline is behind (I10).
///
/// The gateway notes what the log took. Whoever runs the stages tells it, through ``passed(_:)`` and ``refused(_:)``, how far
/// they came; without that every upload would seem to wait for ever, so a gateway that nobody tells is made without one.
///
/// Where the stages are other processes nobody tells it what ingest refused as a whole, and such a record seems to wait until
/// a later one has passed. So a partition whose uploads wait too long still takes one a second: when it has passed, all before
/// it have, and a backlog that is real grows by no more than that.
package final class UploadBacklog: Sendable {
    /// Uploads that came within a short time of each other, as one.
    private struct Group {
        let begin: Duration
        var last: Int64
    }

    private struct Line {
        /// Everything up to here can be pulled.
        var passed: Int64 = -1
        /// By rising offsets, none of them wholly passed; at most twice ``groups`` of them.
        var waiting: [Group] = []
        /// When the next upload is taken although those before it wait too long; `nil` while they do not.
        var nextProbe: Duration?
        /// Offsets above `passed` that will have no result.
        var refused: Set<Int64> = []

        func lag(at now: Duration) -> Duration { waiting.first.map { now - $0.begin } ?? .zero }

        /// Keeps the number of groups in bounds: two neighbours become one, which counts from the first.
        mutating func joinPairs() {
            waiting = stride(from: 0, to: waiting.count, by: 2).map { place in
                Group(begin: waiting[place].begin, last: waiting[min(place + 1, waiting.count - 1)].last)
            }
        }

        mutating func settle() {
            while refused.remove(passed + 1) != nil { passed += 1 }
            waiting.removeFirst(waiting.prefix { $0.last <= passed }.count)
        }
    }

    /// How finely the longest lag is divided: so exact is the lag, and so many groups are kept.
    private static let groups = 100
    /// How often a partition whose uploads wait too long takes one: seldom enough for any stage, and soon for a person.
    private static let probeInterval = Duration.seconds(1)
    /// Refused records remembered until those before them have passed; a gateway makes hardly any.
    private static let maximumRefused = 1024

    /// The longest lag with which uploads are still taken.
    package let maximumLag: Duration
    /// One for each partition, at its place.
    private let lines: Mutex<[Line]>

    /// Begins with nothing that waits.
    package init(partitions: Int, maximumLag: Duration) {
        self.maximumLag = maximumLag
        lines = Mutex(Array(repeating: Line(), count: partitions))
    }

    /// Everything in the upload's partition up to it can be pulled.
    package func passed(_ upload: UploadReference) {
        lines.withLock { lines in
            guard upload.offset > lines[upload.partition].passed else { return }
            lines[upload.partition].passed = upload.offset
            lines[upload.partition].refused = lines[upload.partition].refused.filter { $0 > upload.offset }
            lines[upload.partition].settle()
        }
    }

    /// Ingest refused the record as a whole: nothing of it will ever be pulled.
    package func refused(_ upload: UploadReference) {
        lines.withLock { lines in
            guard upload.offset > lines[upload.partition].passed,
                lines[upload.partition].refused.count < Self.maximumRefused
            else { return }
            lines[upload.partition].refused.insert(upload.offset)
            lines[upload.partition].settle()
        }
    }

    /// The log has an upload.
    func began(_ upload: UploadReference, at now: Duration) {
        lines.withLock { lines in
            // Whoever noted it may come after whoever passed it on.
            guard upload.offset > lines[upload.partition].passed else { return }
            let newest = lines[upload.partition].waiting.count - 1
            if newest >= 0, now - lines[upload.partition].waiting[newest].begin < maximumLag / Self.groups {
                let last = lines[upload.partition].waiting[newest].last
                lines[upload.partition].waiting[newest].last = max(last, upload.offset)
            } else {
                lines[upload.partition].waiting.append(Group(begin: now, last: upload.offset))
                if lines[upload.partition].waiting.count > 2 * Self.groups { lines[upload.partition].joinPairs() }
            }
        }
    }

    /// How long the oldest upload of a partition has waited, and whether one more is taken now.
    func judge(_ partition: Int, at now: Duration) -> (lag: Duration, takesOneMore: Bool) {
        lines.withLock { lines in
            let lag = lines[partition].lag(at: now)
            guard lag > maximumLag else {
                lines[partition].nextProbe = nil
                return (lag, true)
            }
            guard let probe = lines[partition].nextProbe, now < probe else {
                // The first that comes is refused: what waits may pass within the next second.
                defer { lines[partition].nextProbe = now + Self.probeInterval }
                return (lag, lines[partition].nextProbe != nil)
            }
            return (lag, false)
        }
    }
}
