import FanOutLink
import SyncModel

/// Where the uploads of callers' windows wait (I10): each has a place in the stream that must have its results next.
///
/// That is first the stream of the caller's partition. Once an upload's own part can be pulled there, it is known where else it may have
/// parts: then it waits for these streams, one after the other, so that an owner's partition has no more uploads of a caller than
/// the caller's own.
struct UploadPlaces {
    struct Upload {
        let caller: UploadCaller
        let reference: UploadReference
        /// The other partitions whose owners it names, but for those that it has waited for.
        var others: [Int]
        /// When it got its place in the stream.
        var entered: Duration
        /// The longest time that a stream which it has passed was busy with it.
        var cost = Duration.zero
        /// The longest time that it waited for others of its caller in such a stream.
        var delay = Duration.zero

        init(_ reference: UploadReference, of caller: UploadCaller, appended: Duration, others: [Int]) {
            self.caller = caller
            self.reference = reference
            self.others = others
            entered = appended
        }
    }

    /// An upload that can be pulled.
    struct Ended {
        let caller: UploadCaller
        /// How much longer than its way through the stages it took in a stream, without the time that uploads of other callers before it
        /// took.
        let delay: Duration
        /// How long a stream was busy with it, as far as that shows.
        ///
        /// The time since another upload passed while it waited, on average of those that passed together, and no more than it took longer
        /// than its way: uploads at an interval pass at this interval, too. Of those of several callers that passed together it is not known
        /// whose it was.
        let cost: Duration
    }

    /// The way of uploads through the stages into a stream: the shortest time that one took within the last twenty seconds or so.
    private struct Way {
        private static let period = Duration.seconds(10)
        /// What is longer is not the way, but the work of others: a caller may have been busy for as long as the shortest time is known.
        private static let longest = Duration.milliseconds(250)

        private var since = Duration.zero
        private var now: Duration?
        /// In the period before.
        private var before: Duration?

        /// Takes the time of an upload; returns the way.
        mutating func take(_ duration: Duration, at time: Duration) -> Duration {
            if time - since >= Self.period {
                before = time - since < Self.period * 2 ? now : nil
                (since, now) = (time, nil)
            }
            let shortest = min(now ?? duration, duration)
            now = shortest
            return min(shortest, before ?? shortest, Self.longest)
        }
    }

    private struct Stream {
        /// By partition of `uploads`, in the order of their offsets.
        var uploads: [Int: [Upload]] = [:]
        /// What the stream has applied.
        var known: StreamReport
        /// How many have a place, those included that are being appended.
        var places = 0
        /// When the stream applied something last, or the first place was taken.
        var progress = Duration.zero
        /// When a part could be pulled last, or the first place was taken.
        var passed = Duration.zero
        var way = Way()
        /// The caller of the last upload that passed, and since when only its uploads did.
        var last: (caller: SyncID, since: Duration)?

        /// Whether everything of an upload that the stream may have can be pulled.
        func hasPassed(_ upload: UploadReference) -> Bool {
            known.uploads[upload.partition].map { $0.offset >= upload.offset } ?? false
        }

        /// Whether no report before named a part, or a later one, of a partition of `uploads`.
        func isNews(_ progress: UploadProgress, of source: Int) -> Bool {
            known.uploads[source].map { $0 < progress } ?? true
        }
    }

    /// Uploads of a partition that are tracked; as long as it has more, the others count no longer once they are durable.
    private static let maximumTracked = 16_384

    /// How long a stream may apply nothing until it is stalled.
    private let patience: Duration
    private var streams: [Stream]

    init(partitions: Int, patience: Duration) {
        self.patience = patience
        streams = (0..<partitions).map { Stream(known: StreamReport(partition: $0)) }
    }

    /// Whether a stream in which the caller has a place has applied nothing for a while.
    func isStalled(_ caller: UploadCaller, at now: Duration) -> Bool {
        caller.hasPlace { now - streams[$0].progress >= patience }
    }

    mutating func take(in stream: Int, for caller: UploadCaller, at now: Duration) {
        if streams[stream].places == 0 { (streams[stream].progress, streams[stream].passed) = (now, now) }
        streams[stream].places += 1
        caller.take(in: stream)
    }

    mutating func leave(_ stream: Int, of caller: UploadCaller) {
        streams[stream].places -= 1
        caller.leave(stream)
    }

    /// An upload that has a place in its caller's partition is durable.
    ///
    /// - Returns: whether it still has a place.
    mutating func appended(_ upload: Upload, at now: Duration) -> Bool {
        let own = upload.reference.partition
        // The fan-out can report the upload before the gateway does.
        if streams[own].hasPassed(upload.reference) { return move(upload, from: own, at: now) }
        guard streams[own].uploads[own, default: []].count < Self.maximumTracked else {
            leave(own, of: upload.caller)
            return false
        }
        insert(upload, in: own)
        return true
    }

    /// The large parts of a report that no earlier one had, of this fan-out or of another with the same stream.
    func newParts(of report: StreamReport) -> [StreamReport.LargePart] {
        if report.largeParts.isEmpty { return [] }
        let stream = streams[report.partition]
        return report.largeParts.filter { stream.isNews($0.progress, of: $0.source) }
    }

    /// Takes what a stream has applied.
    ///
    /// - Returns: the uploads that have no place any more.
    mutating func report(_ report: StreamReport, at now: Duration) -> [Ended] {
        let number = report.partition
        // The time of an outage is no cost of the upload that ends it.
        let wasStalled = now - streams[number].progress >= patience
        streams[number].progress = now
        let isNews = report.uploads.contains { streams[number].isNews($0.value, of: $0.key) }
        streams[number].known.merge(report.lasting)
        guard isNews else { return [] }
        var passed: [Upload] = []
        for source in report.uploads.keys.sorted() {
            let waiting = streams[number].uploads[source] ?? []
            let count = waiting.prefix { streams[number].hasPassed($0.reference) }.count
            guard count > 0 else { continue }
            passed += waiting[..<count]
            streams[number].uploads[source] = count == waiting.count ? nil : Array(waiting[count...])
        }
        // Uploads that passed together are not distinguished.
        let (last, before) = (streams[number].last, streams[number].passed)
        let since = passed.map { last?.caller == $0.caller.id ? last?.since ?? before : before }
        streams[number].passed = now
        let isOfOne = passed.allSatisfy { $0.caller === passed[0].caller }
        if let newest = passed.last, let since = since.last { streams[number].last = (newest.caller.id, since) }
        return zip(passed, since).compactMap { upload, since in
            var upload = upload
            let way = streams[number].way.take(now - upload.entered, at: now)
            upload.delay = max(upload.delay, now - max(upload.entered, since) - way)
            if before > upload.entered, isOfOne, !wasStalled {
                upload.cost = max(upload.cost, min((now - before) / passed.count, now - upload.entered - way))
            }
            if move(upload, from: number, at: now) { return nil }
            return Ended(caller: upload.caller, delay: upload.delay, cost: upload.cost)
        }
    }

    /// Ingest refused a record as a whole: there is nothing to pull.
    ///
    /// - Returns: the caller who had a place for it.
    mutating func refused(_ upload: UploadReference) -> UploadCaller? {
        let own = upload.partition
        guard let index = streams[own].uploads[own]?.firstIndex(where: { $0.reference == upload }),
            let caller = streams[own].uploads[own]?.remove(at: index).caller
        else { return nil }
        leave(own, of: caller)
        return caller
    }

    /// Moves an upload that has passed a stream to the next one in which it may have a part that has not.
    ///
    /// - Returns: whether there is one; otherwise it has no place any more.
    private mutating func move(_ upload: Upload, from stream: Int, at now: Duration) -> Bool {
        var upload = upload
        let own = upload.reference.partition
        leave(stream, of: upload.caller)
        while let next = upload.others.popLast() {
            let newest = streams[own].known.partsElsewhere[next] ?? -1
            guard upload.reference.offset <= newest, !streams[next].hasPassed(upload.reference) else { continue }
            take(in: next, for: upload.caller, at: now)
            upload.entered = now
            insert(upload, in: next)
            return true
        }
        return false
    }

    private mutating func insert(_ upload: Upload, in stream: Int) {
        let source = upload.reference.partition
        // They come nearly in the order of their offsets.
        let before = streams[stream].uploads[source]?.lastIndex { $0.reference.offset < upload.reference.offset }
        streams[stream].uploads[source, default: []].insert(upload, at: before.map { $0 + 1 } ?? 0)
    }
}
