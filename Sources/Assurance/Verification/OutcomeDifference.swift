import Digest
import SyncModel

/// Compares two outcomes of one batch.
struct OutcomeDifference {
    /// The first part in which they differ; `nil` where none does.
    static func first(_ expected: Outcome, _ found: Outcome, item: String) -> Difference? {
        guard expected != found else { return nil }
        let item = "\(item), batch \(expected.batch)"
        if expected.batch != found.batch {
            return Difference("\(item), number", expected: "\(expected.batch)", found: "\(found.batch)")
        }
        if expected.contentHash != found.contentHash {
            return Difference(
                "\(item), content hash", expected: hexadecimal(expected.contentHash),
                found: hexadecimal(found.contentHash))
        }
        if expected.timeStamp != found.timeStamp {
            return Difference(
                "\(item), timeStamp after it", expected: "\(expected.timeStamp)", found: "\(found.timeStamp)")
        }
        if let difference = results(expected.results, found.results, item: item) { return difference }
        return Difference(
            "\(item), summary", expected: summary(expected.summary), found: summary(found.summary))
    }

    /// The first result that differs.
    static func results(_ expected: [ChangeResult], _ found: [ChangeResult], item: String) -> Difference? {
        for (made, there) in zip(expected, found) where made != there {
            return Difference("\(item), result of change \(made.index)", expected: words(made), found: words(there))
        }
        if expected.count != found.count {
            return Difference("\(item), results", expected: "\(expected.count)", found: "\(found.count)")
        }
        return nil
    }

    private static func words(_ result: ChangeResult) -> String {
        let words = "id \(result.id): \(result.status), held from \(DifferenceFormatter.optional(result.heldFrom))"
        return result.locator.map { "\(words), row of \($0.knowledgeID) at \($0.timeStamp)" } ?? words
    }

    static func summary(_ summary: BatchSummary?) -> String {
        guard let summary else { return "none" }
        return "\(summary.changeCount) changes, \(summary.otherOwners.count) other owners, "
            + "\(summary.refusals.count) refusals"
    }
}
