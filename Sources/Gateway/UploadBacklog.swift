import SyncModel
import Synchronization

/// The uploads that cannot be pulled yet, and since when the oldest of them waits: how far the pipeline is behind (I10).
///
/// The gateway notes what the log took. Whoever runs the stages tells it, through ``passed(_:)`` and ``refused(_:)``, how far
/// they came; without that every upload would seem to wait for ever, so a gateway that nobody tells is made without one.
public final class UploadBacklog: Sendable {
    /// Uploads that came within a short time of each other, as one.
    private struct Group {
        let begin: Duration
        var last: Int64
    }

    private struct Line {
        /// Everything up to here can be pulled.
        var passed: Int64 = -1
        /// By rising offsets, none of them wholly passed; at most about ``groups`` of them.
        var waiting: [Group] = []
        /// Offsets above `passed` that will have no result.
        var refused: Set<Int64> = []

        mutating func settle() {
            while refused.remove(passed + 1) != nil { passed += 1 }
            waiting.removeFirst(waiting.prefix { $0.last <= passed }.count)
        }
    }

    /// How finely the longest lag is divided: so exact is the lag, and so many groups are kept.
    private static let groups = 100
    /// Refused records remembered until those before them have passed; a gateway makes hardly any.
    private static let maximumRefused = 1024

    /// The longest lag with which uploads are still taken.
    public let maximumLag: Duration
    /// One for each partition, at its place.
    private let lines: Mutex<[Line]>

    /// Begins with nothing that waits.
    public init(partitions: Int, maximumLag: Duration) {
        self.maximumLag = maximumLag
        lines = Mutex(Array(repeating: Line(), count: partitions))
    }

    /// Everything in the upload's partition up to it can be pulled.
    public func passed(_ upload: UploadReference) {
        lines.withLock { lines in
            guard upload.offset > lines[upload.partition].passed else { return }
            lines[upload.partition].passed = upload.offset
            lines[upload.partition].refused = lines[upload.partition].refused.filter { $0 > upload.offset }
            lines[upload.partition].settle()
        }
    }

    /// Ingest refused the record as a whole: nothing of it will ever be pulled.
    public func refused(_ upload: UploadReference) {
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
            }
        }
    }

    /// How long the oldest upload of a partition has waited.
    func lag(of partition: Int, at now: Duration) -> Duration {
        lines.withLock { $0[partition].waiting.first.map { now - $0.begin } ?? .zero }
    }
}
