import FanOutLink
import Gateway
import SyncModel

/// Up to which `Ts` a device has everything of a table.
///
/// A device asks above the greatest `Ts` that it has. Where that is from an upload of its own, others may have written rows below it
/// that it has not seen, and these must be sent. What it has must not be: a row that comes again while it is dirty looks like a
/// conflict. So the watermark rises
/// - over rows that are exactly as this device wrote them;
/// - to the end of an answer after which the device uploaded, once it has that upload's `Ts` (``RestAnswers``);
/// - to a `ts` that the device can have from a download alone: that of a row of another device, which is still there or was the newest
///   of the last answer, where no 409 has shown it or a newer one.
struct RestWatermark: Sendable {
    private let table: FaceTable
    private let session: any FaceSession
    private let answers: RestAnswers

    init(_ table: FaceTable, _ session: any FaceSession, _ answers: RestAnswers) {
        self.table = table
        self.session = session
        self.answers = answers
    }

    /// Whether a device that asks above `ts` may lack a row: not the one of another device that is at `ts`, from whichever answer it
    /// came.
    static func isMissing(_ row: FaceRow, ts: TimeStamp) -> Bool {
        // A device without rows needs none that is deleted.
        if ts == .zero { return !row.isDeleted }
        if row.timeStamp > ts { return true }
        return row.writer == .device ? row.isExact != true : row.timeStamp < ts
    }

    /// From where a request with this `ts` is answered, and what the stream must have reached.
    ///
    /// The device may name less than it has had, as one that removed the rows it deleted, or begins again. Of a stream that is behind it
    /// would get rows as they were before it deleted them, or would not get those up to the watermark, which is not lowered.
    ///
    /// - Parameter download: which begins with it.
    func start(
        _ ts: TimeStamp, _ download: inout RestAnswers.Download
    ) async throws -> (above: TimeStamp, kept: TimeStamp) {
        let begun = session.now
        let watermark = table.watermark(in: session.epoch)
        // Another gateway may have learned more, or shown the device a row.
        let positions = try await session.positions(isFresh: true)
        let known = TimeStamp(positions[watermark] ?? 0)
        let kept = max(known, WrittenPosition(session, of: table).value(in: positions))
        let newest = positions[table.newestDownload(in: session.epoch)] ?? 0
        let received = answers.received(session.device, table.index, ts: ts, mark: newest)
        download.mark = try await mark(after: newest, begun: begun)
        if ts <= known { return (ts, kept) }
        var (passed, hasOthers) = try await passedOwn(from: max(known, received), to: ts)
        var isDurable = received > known || hasOthers
        if passed < ts, ts.rawValue > positions[table.shownWithConflicts(in: session.epoch)] ?? 0,
            try await isFromDownload(ts)
        {
            passed = ts
            isDurable = true
        }
        // What is over own rows alone every gateway finds by itself.
        if passed > known { try await session.raise([watermark: passed.rawValue], isDurable: isDurable) }
        return (passed, kept)
    }

    /// Lets the other gateways know that the newest download begins in this one, if it was in another one before.
    ///
    /// Downloads are compared by when they began, as far as the gateways' clocks agree: a device may have given up one that waits, for
    /// another one at another gateway.
    private func mark(after newest: Int64, begun: Int64) async throws -> Int64 {
        guard session.sharesPositions else { return 0 }
        if newest > 0, answers.mark(of: session.device, table.index) == newest { return newest }
        // Not the same as in another gateway at the same time.
        let mark = begun << 10 + .random(in: 1..<1 << 10)
        if mark > newest { try await session.raise([table.newestDownload(in: session.epoch): mark], isDurable: true) }
        return mark
    }

    /// The end of the rows from a timeStamp on that the device has, as it wrote them, and whether the one at `ts` is of another device.
    private func passedOwn(
        from: TimeStamp, to ts: TimeStamp
    ) async throws -> (end: TimeStamp, hasOthers: Bool) {
        var passed = from
        var hasOthers = false
        var rest: StreamSelection? = .changes(above: from, upTo: ts, table: table.index)
        while let selection = rest {
            let found = try await session.rows(selection, limit: StreamQuery.maximumRows, leastHead: ts)
            for row in found.rows {
                if Self.isMissing(row, ts: ts) { return (passed, hasOthers) }
                passed = row.timeStamp
                hasOthers = hasOthers || row.writer != .device
            }
            rest = found.rest
        }
        return (max(passed, ts), hasOthers)
    }

    /// Whether a `ts` is that of a row of another device, which no upload's answer has but that of a conflict.
    private func isFromDownload(_ ts: TimeStamp) async throws -> Bool {
        if answers.isNewest(ts, session.device, table.index) { return true }
        let selection = StreamSelection.changes(above: TimeStamp(ts.rawValue - 1), upTo: ts, table: table.index)
        guard let row = try await session.rows(selection, limit: 1, leastHead: ts).rows.first else { return false }
        return row.timeStamp == ts && row.writer != .device
    }
}
