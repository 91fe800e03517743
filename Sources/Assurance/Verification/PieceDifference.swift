import Digest
import SyncModel

/// Compares two pieces of one result.
struct PieceDifference {
    private let names: RowNames

    init(_ names: RowNames) { self.names = names }

    /// The first part in which they differ; `nil` where none does.
    func first(_ expected: OrderedPiece, _ found: OrderedPiece, item: String) -> Difference? {
        guard expected != found else { return nil }
        let pairs: [(String, String, String)] = [
            ("epoch", expected.epoch, found.epoch),
            ("last piece", "\(expected.isLast)", "\(found.isLast)"),
            ("schema version", expected.schema, found.schema),
            ("upload", words(expected.upload, expected.uploadPart), words(found.upload, found.uploadPart)),
            ("log time", "\(expected.logTime)", "\(found.logTime)"),
            ("timeStamp", "\(expected.timeStamp)", "\(found.timeStamp)"),
            ("owner", expected.owner.text, found.owner.text),
            ("caller", expected.device.caller.text, found.device.caller.text),
            ("device", expected.device.knowledgeID.text, found.device.knowledgeID.text),
            ("batch", DifferenceFormatter.optional(expected.batch), DifferenceFormatter.optional(found.batch)),
            ("verdict", "\(expected.verdict)", "\(found.verdict)"),
            ("content hash", hexadecimal(expected.contentHash), hexadecimal(found.contentHash)),
            ("rows", "\(expected.rows.count)", "\(found.rows.count)"),
        ]
        for (part, made, there) in pairs where !made.utf8.elementsEqual(there.utf8) {
            return Difference("\(item), \(part)", expected: made, found: there)
        }
        for (made, there) in zip(expected.rows, found.rows) {
            let row = "\(item), \(names.row(made.row.key))"
            if let difference = RowDifference(names).first(made.row, there.row, item: row) { return difference }
            if made.before != there.before {
                return Difference("\(row), timeStamp before", expected: "\(made.before)", found: "\(there.before)")
            }
        }
        if let difference = OutcomeDifference.results(expected.results, found.results, item: item) {
            return difference
        }
        return Difference(
            "\(item), summary", expected: OutcomeDifference.summary(expected.summary),
            found: OutcomeDifference.summary(found.summary))
    }

    private func words(_ upload: UploadReference, _ part: Int) -> String {
        "part \(part) of uploads[\(upload.partition)] offset \(upload.offset)"
    }
}
