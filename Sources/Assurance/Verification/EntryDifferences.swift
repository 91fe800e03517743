import Digest
import SyncModel

struct RowDifference {
    private let names: RowNames

    init(_ names: RowNames) { self.names = names }

    /// The first difference; `nil` where there is none.
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
        return Difference(item, expected: "the row", found: "other bytes of the same content")
    }
}

extension RowValues {
    var columns: [[UInt8]] { ranges.map { Array(bytes[$0]) } }
}

struct OutcomeDifference {
    /// The first difference; `nil` where there is none.
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

    static func results(_ expected: [ChangeResult], _ found: [ChangeResult], item: String) -> Difference? {
        for (made, there) in zip(expected, found) where made != there {
            return Difference(
                "\(item), result of change \(made.index)", expected: describe(made), found: describe(there))
        }
        if expected.count != found.count {
            return Difference("\(item), results", expected: "\(expected.count)", found: "\(found.count)")
        }
        return nil
    }

    private static func describe(_ result: ChangeResult) -> String {
        let text = "id \(result.id): \(result.status), held from \(DifferenceFormatter.optional(result.heldFrom))"
        return result.locator.map { "\(text), row of \($0.knowledgeID) at \($0.timeStamp)" } ?? text
    }

    static func summary(_ summary: BatchSummary?) -> String {
        guard let summary else { return "none" }
        return "\(summary.changeCount) changes, \(summary.otherOwners.count) other owners, "
            + "\(summary.refusals.count) refusals"
    }
}

enum UsageDifference {
    static func difference(_ expected: OwnerUsage, _ found: OwnerUsage, of owner: SyncID) -> Difference {
        Difference("usage of owner \(owner)", expected: describe(expected), found: describe(found))
    }

    private static func describe(_ usage: OwnerUsage) -> String {
        "\(usage.rows) rows of \(usage.bytes) bytes, \(usage.deletedRows) deleted ones of \(usage.deletedBytes)"
    }
}

enum AppliedChangeDifference {
    /// The difference of two applied changes under one id, of which one may be missing.
    static func difference(
        _ expected: AppliedChange?, _ found: AppliedChange?, of key: AppliedChangeKey, _ names: RowNames
    ) -> Difference {
        Difference(
            "\(names.device(key.device)), changeId with hash \(hexadecimal(key.id.bytes))",
            expected: describe(expected), found: describe(found))
    }

    private static func describe(_ change: AppliedChange?) -> String {
        change.map { "\($0.status), content \(hexadecimal($0.identity.content.bytes))" } ?? "no applied change"
    }
}

struct PieceDifference {
    private let names: RowNames

    init(_ names: RowNames) { self.names = names }

    /// The first difference; `nil` where there is none.
    func first(_ expected: OrderedPiece, _ found: OrderedPiece, item: String) -> Difference? {
        guard expected != found else { return nil }
        let pairs: [(String, String, String)] = [
            ("epoch", expected.epoch, found.epoch),
            ("last piece", "\(expected.isLast)", "\(found.isLast)"),
            ("schema version", expected.schema, found.schema),
            ("upload", describe(expected.upload, expected.uploadPart), describe(found.upload, found.uploadPart)),
            ("log time", "\(expected.logTime)", "\(found.logTime)"),
            ("timeStamp", "\(expected.timeStamp)", "\(found.timeStamp)"),
            ("owner", expected.owner.text, found.owner.text),
            ("caller", expected.device.caller.text, found.device.caller.text),
            ("device", expected.device.knowledgeID.text, found.device.knowledgeID.text),
            ("batch", DifferenceFormatter.optional(expected.batch), DifferenceFormatter.optional(found.batch)),
            ("verdict", "\(expected.verdict)", "\(found.verdict)"),
            ("content hash", hexadecimal(expected.contentHash), hexadecimal(found.contentHash)),
            ("touched bytes", "\(expected.touchedBytes)", "\(found.touchedBytes)"),
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

    private func describe(_ upload: UploadReference, _ part: Int) -> String {
        "part \(part) of uploads[\(upload.partition)] offset \(upload.offset)"
    }
}

/// Formats values for differences: short, on one line.
enum DifferenceFormatter {
    /// Bytes of a value that are shown.
    private static let maximum = 120

    static func quoted(_ bytes: some Collection<UInt8>) -> String { "\"\(shortened(bytes))\"" }

    static func json(_ bytes: (some Collection<UInt8>)?) -> String {
        guard let bytes, !bytes.isEmpty else { return "no value" }
        return shortened(bytes)
    }

    static func optional(_ value: (some CustomStringConvertible)?) -> String { value.map { "\($0)" } ?? "none" }

    private static func shortened(_ bytes: some Collection<UInt8>) -> String {
        guard bytes.count <= maximum else {
            return String(decoding: bytes.prefix(maximum), as: UTF8.self) + "… (\(bytes.count) bytes)"
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The names of rows and devices in differences.
struct RowNames: Sendable {
    private let tables: [Table]

    /// Without a schema version tables and columns have numbers.
    init(_ schema: Schema?) { tables = schema?.tables ?? [] }

    func table(_ number: Int) -> String {
        tables.indices.contains(number) ? tables[number].name : "number \(number)"
    }

    func column(_ number: Int, of table: Int) -> String {
        guard tables.indices.contains(table), tables[table].columns.indices.contains(number) else {
            return "number \(number)"
        }
        return tables[table].columns[number].name
    }

    func row(_ key: RowKey) -> String { "table \(table(key.table)), owner \(key.owner), id \(key.id)" }

    func device(_ key: DeviceKey) -> String {
        "device \(key.device.knowledgeID) of \(key.device.caller), with owner \(key.owner)"
    }
}
