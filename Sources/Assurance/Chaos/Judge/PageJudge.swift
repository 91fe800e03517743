import DeviceModel
import SyncModel

/// Judges the pages that one device gets.
struct PageJudge {
    private struct Row: Hashable {
        let owner: String
        let table: String
        let id: String
    }

    /// A result that a drained answer must cover.
    struct Written {
        let owner: SyncID
        let table: String
        let id: String
        let knowledgeID: String
        let timeStamp: Int64

        /// The changes of a batch that wrote a row, or found it deleted.
        static func of(_ edits: [Edit], _ results: [Answer.Result], by device: String, _ schema: Schema) -> [Written] {
            zip(edits, results).compactMap { edit, result in
                guard result.timeStamp > 0 else { return nil }
                return Written(
                    owner: edit.owner, table: schema.tables[edit.table].name, id: edit.id,
                    knowledgeID: result.knowledgeID ?? device, timeStamp: result.timeStamp)
            }
        }
    }

    typealias Vector = [SyncID: [String: Int64]]

    private let name: String
    private let granted: Set<String>
    /// The newest timeStamp with which the device was sent each row.
    private var newest: [Row: Int64] = [:]

    /// - Parameters:
    ///   - name: the device in findings.
    ///   - granted: the owners that the device may read.
    init(_ name: String, granted: [SyncID]) {
        self.name = name
        self.granted = Set(granted.map(\.text))
    }

    /// Judges a page.
    ///
    /// - Parameters:
    ///   - before: the device's vector with the request.
    ///   - after: its vector with the page applied.
    ///   - covered: the results that the page's streams must have: those of the answer's own batch.
    mutating func judge(
        _ page: Answer, before: Vector, after: Vector, covering covered: [Written] = [], of batch: BatchName? = nil
    ) -> [Finding] {
        var findings: [Finding] = []
        func find(_ kind: Finding.Kind, _ text: String) {
            findings.append(Finding(kind: kind, text: "\(name): \(text)", batch: batch))
        }
        for written in covered {
            let row = Row(owner: written.owner.text, table: written.table, id: written.id)
            newest[row] = max(newest[row] ?? 0, written.timeStamp)
        }
        var last: [String: Int64] = [:]
        for sent in page.rows {
            if !granted.contains(sent.owner) { find(.vector, "a row of \(sent.owner), which is not granted") }
            if sent.timeStamp <= last[sent.owner] ?? 0 {
                find(.order, "row \(sent.id) of \(sent.owner) at \(sent.timeStamp) follows \(last[sent.owner] ?? 0)")
            }
            last[sent.owner] = sent.timeStamp
            let row = Row(owner: sent.owner, table: sent.table, id: sent.id)
            if let known = newest[row], known > sent.timeStamp {
                find(
                    .olderRow,
                    "\(sent.table) \(sent.id) of \(sent.owner) at \(sent.timeStamp) came after its version \(known)")
            }
            newest[row] = sent.timeStamp
        }
        for (owner, entries) in before where !page.revoked.contains(owner.text) && !page.resync.contains(owner.text) {
            for (device, timeStamp) in entries where Self.entry(after, owner, device) < timeStamp {
                find(
                    .vector,
                    "the entry of \(owner), \(device) falls from \(timeStamp) to \(Self.entry(after, owner, device))")
            }
        }
        if !page.resync.isEmpty { find(.vector, "it must resync \(page.resync), though no history changed") }
        if !page.revoked.isEmpty { find(.vector, "\(page.revoked) are revoked, though granted") }
        if !page.hasMore { findings += Self.judgeDrained(after, covering: covered, name, batch) }
        return findings
    }

    /// Judges the vector of an answer that said that nothing is left: it must cover a batch's results.
    static func judgeDrained(
        _ vector: Vector, covering covered: [Written], _ name: String, _ batch: BatchName?
    ) -> [Finding] {
        covered.compactMap { written in
            let entry = entry(vector, written.owner, written.knowledgeID)
            guard entry < written.timeStamp else { return nil }
            return Finding(
                kind: .wrongDrained,
                text: "\(name): nothing is left at \(entry) of \(written.owner), \(written.knowledgeID), though "
                    + "\(written.table) \(written.id) was written at \(written.timeStamp)",
                batch: batch)
        }
    }

    private static func entry(_ vector: Vector, _ owner: SyncID, _ device: String) -> Int64 {
        vector[owner]?[device] ?? vector[owner]?["*"] ?? 0
    }
}
