import FanOutLink
import SyncModel
import Synchronization

/// Tracks, for each partition, the uploads that cannot be pulled yet and how long the oldest has waited: the lag (I10).
///
/// The gateway records each append. The fan-out must report progress through ``passed(_:)`` and ``refused(_:)``;
/// without these reports every upload would seem to wait permanently, so a gateway that receives none has no backlog.
///
/// Between processes, records that ingest refused as a whole are not reported, and such a record seems to wait until a
/// later one has passed. Therefore a partition with too much lag still accepts one upload a second, a probe: once it
/// has passed, all uploads before it have, and a real backlog grows by no more than the probes. Uploads of other partitions' callers, with
/// changes for an owner of this one, have probes of their own: they do not show what has passed, and must leave this one's to those that do.
package final class UploadBacklog: Sendable {
    /// Uploads appended within a short time of each other, tracked together.
    private struct Group {
        let begin: Duration
        var last: Int64
    }

    private struct Partition {
        /// All uploads up to this offset can be pulled.
        var passed: Int64 = -1
        /// In offset order, none of them fully passed; at most twice ``groups`` of them.
        var waiting: [Group] = []
        /// When the next probe is accepted; `nil` while the lag is within the limit.
        var nextProbe: Duration?
        var nextProbeOfOthers: Duration?
        /// Offsets above `passed` of records that ingest refused, which will have no result.
        var refused: Set<Int64> = []

        func lag(at now: Duration) -> Duration { waiting.first.map { now - $0.begin } ?? .zero }

        /// Halves the number of groups: two neighbours become one, with the time of the first.
        mutating func joinPairs() {
            waiting = stride(from: 0, to: waiting.count, by: 2).map { index in
                Group(begin: waiting[index].begin, last: waiting[min(index + 1, waiting.count - 1)].last)
            }
        }

        mutating func removePassed() {
            while refused.remove(passed + 1) != nil { passed += 1 }
            waiting.removeFirst(waiting.prefix { $0.last <= passed }.count)
        }
    }

    /// The lag is exact to this fraction of ``maximumLag``.
    private static let groups = 100
    /// The interval between probes: long enough for any stage, and short for an operator who waits for recovery.
    private static let probeInterval = Duration.seconds(1)
    /// Refused records to remember for each partition; a gateway hardly appends any.
    private static let maximumRefused = 1024

    /// The longest lag with which uploads are still accepted without a limit.
    package let maximumLag: Duration
    private let partitions: Mutex<[Partition]>
    private let windows = Mutex<UploadWindows?>(nil)

    package init(partitions: Int, maximumLag: Duration) {
        self.maximumLag = maximumLag
        self.partitions = Mutex(Array(repeating: Partition(), count: partitions))
    }

    /// Reports the progress to a gateway's windows, too.
    func report(to windows: UploadWindows) { self.windows.withLock { $0 = windows } }

    /// A stream has applied something.
    package func passed(_ report: StreamReport) {
        windows.withLock { $0 }?.passed(report)
        guard let upload = report.passed else { return }
        update(upload.partition) { partition in
            guard upload.offset > partition.passed else { return }
            partition.passed = upload.offset
            partition.refused = partition.refused.filter { $0 > upload.offset }
            partition.removePassed()
        }
    }

    /// Ingest refused the record as a whole, so it will have no result to pull.
    package func refused(_ upload: UploadReference) {
        windows.withLock { $0 }?.refused(upload)
        update(upload.partition) { partition in
            guard upload.offset > partition.passed, partition.refused.count < Self.maximumRefused else { return }
            partition.refused.insert(upload.offset)
            partition.removePassed()
        }
    }

    /// The upload is durable in the log.
    func appended(_ upload: UploadReference, at now: Duration) {
        update(upload.partition) { partition in
            // The fan-out can report the upload before the gateway does.
            guard upload.offset > partition.passed else { return }
            let newest = partition.waiting.count - 1
            if newest >= 0, now - partition.waiting[newest].begin < maximumLag / Self.groups {
                partition.waiting[newest].last = max(partition.waiting[newest].last, upload.offset)
            } else {
                partition.waiting.append(Group(begin: now, last: upload.offset))
                if partition.waiting.count > 2 * Self.groups { partition.joinPairs() }
            }
        }
    }

    /// How long the oldest upload of a partition has waited, and whether one more is accepted now.
    ///
    /// - Parameter own: whether its caller is of the partition, else one of the owners that it names.
    func check(_ partition: Int, own isOwn: Bool, at now: Duration) -> (lag: Duration, accepts: Bool) {
        update(partition) { partition in
            let lag = partition.lag(at: now)
            guard lag > maximumLag else {
                (partition.nextProbe, partition.nextProbeOfOthers) = (nil, nil)
                return (lag, true)
            }
            let next = isOwn ? \Partition.nextProbe : \Partition.nextProbeOfOthers
            guard let probe = partition[keyPath: next], now < probe else {
                // The first upload after the limit was exceeded is refused: the waiting ones may pass within a second.
                defer { partition[keyPath: next] = now + Self.probeInterval }
                return (lag, partition[keyPath: next] != nil)
            }
            return (lag, false)
        }
    }

    private func update<Result>(_ partition: Int, _ body: (inout Partition) -> Result) -> Result {
        partitions.withLock { body(&$0[partition]) }
    }
}
