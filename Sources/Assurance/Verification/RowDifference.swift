import SyncModel

/// Compares two states of one row, column by column.
struct RowDifference {
    private let names: RowNames

    init(_ names: RowNames) { self.names = names }

    /// The first column in which two states of a row differ; `nil` where none does.
    func first(_ expected: OrderedRow, _ found: OrderedRow, item: String? = nil) -> Difference? {
        let item = item ?? names.row(expected.key)
        guard expected != found else { return nil }
        let pairs: [(String, String, String)] = [
            ("row", names.row(expected.key), names.row(found.key)),
            ("knowledge_id", expected.knowledgeID.text, found.knowledgeID.text),
            ("time_stamp", "\(expected.timeStamp)", "\(found.timeStamp)"),
            ("version", "\(expected.version)", "\(found.version)"),
            ("deleted", "\(expected.isDeleted)", "\(found.isDeleted)"),
            ("created_at", "\(expected.createdAt)", "\(found.createdAt)"),
            ("updated_at", "\(expected.updatedAt)", "\(found.updatedAt)"),
            ("writer's sync_id", expected.writer.caller.text, found.writer.caller.text),
            ("writer's knowledge_id", expected.writer.knowledgeID.text, found.writer.knowledgeID.text),
            (
                "writer's batch", DifferenceFormatter.optional(expected.writerBatch),
                DifferenceFormatter.optional(found.writerBatch)
            ),
            ("exact", "\(expected.isExact)", "\(found.isExact)"),
            ("others' time_stamp", "\(expected.othersTimeStamp)", "\(found.othersTimeStamp)"),
        ]
        for (column, made, there) in pairs where !made.utf8.elementsEqual(there.utf8) {
            return Difference("\(item), column \(column)", expected: made, found: there)
        }
        let (made, there) = (expected.values.columns, found.values.columns)
        for number in 0..<max(made.count, there.count) {
            let left = number < made.count ? made[number] : nil
            let right = number < there.count ? there[number] : nil
            if left == right { continue }
            return Difference(
                "\(item), column \(names.column(number, of: expected.key.table))",
                expected: DifferenceFormatter.json(left),
                found: DifferenceFormatter.json(right))
        }
        return Difference(item, expected: "the row", found: "another spelling of it")
    }
}

extension RowValues {
    /// The JSON of each column.
    var columns: [[UInt8]] { ranges.map { Array(bytes[$0]) } }
}
