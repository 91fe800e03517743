import SyncModel

/// The rows of a device, as pulled or as it wrote them, and its knowledge vector.
package struct DeviceCopy {
    package struct Name: Hashable {
        package let owner: SyncID
        package let table: Int
        package let id: String

        package init(owner: SyncID, table: Int, id: String) {
            self.owner = owner
            self.table = table
            self.id = id
        }
    }

    package struct Row {
        package var knowledgeID: String
        package var timeStamp: Int64
        package var version: Int64
        package var isDeleted: Bool
        package var updatedAt: String?
        package var values: [String]
    }

    package private(set) var rows: [Name: Row] = [:]
    /// By owner, then device; `*` is the floor.
    package private(set) var vector: [SyncID: [String: Int64]] = [:]

    /// By owner, the head that the last cut page named.
    private var cutFrom: [SyncID: Int64] = [:]

    package init() {}

    package mutating func apply(_ result: Answer.Result, of edit: Edit, by device: String, _ schema: Schema) {
        guard result.status == "applied" || result.status == "deleted", result.timeStamp > 0 else { return }
        let name = Name(owner: edit.owner, table: edit.table, id: edit.id)
        let table = schema.tables[edit.table]
        let known = rows[name]
        // A row that is recreated keeps nothing of the deleted one.
        let isNew = known.map { $0.isDeleted && result.status == "applied" && !edit.isDelete } ?? true
        // A row that was pulled at that timeStamp or later is the server's version; the results of a repeat may arrive after
        // it. Deleting a tombstone writes nothing.
        if let known, known.timeStamp >= result.timeStamp { return }
        // The vector covers it, so later versions of the row were pulled: a tombstone, which was not stored.
        if known == nil, result.timeStamp <= entry(of: edit.owner, result.knowledgeID ?? device) { return }
        var values =
            isNew
            ? table.columns.map(RowText.initial)
            : known!.values
        for (column, value) in edit.values {
            // Another spelling of a number is the same number to a device.
            values[column] =
                table.columns[column].type == .real && value.hasSuffix("0") ? String(value.dropLast()) : value
        }
        rows[name] = Row(
            knowledgeID: result.knowledgeID ?? device, timeStamp: result.timeStamp, version: result.version,
            isDeleted: edit.isDelete || result.status == "deleted", updatedAt: edit.updatedAt, values: values)
    }

    /// Applies a pulled row, unless the device has a newer one.
    package mutating func apply(_ row: Answer.Row, _ schema: Schema) {
        guard let table = schema.tables.firstIndex(where: { $0.name == row.table }) else { return }
        let name = Name(owner: SyncID(unchecked: row.owner), table: table, id: row.id)
        if let known = rows[name], known.timeStamp > row.timeStamp { return }
        // A device stores no tombstone of a row that it never had.
        if rows[name] == nil, row.isDeleted { return }
        rows[name] = Row(
            knowledgeID: row.knowledgeID, timeStamp: row.timeStamp, version: row.version, isDeleted: row.isDeleted,
            updatedAt: row.updatedAt,
            values: schema.tables[table].columns.map { row.values[$0.name] ?? RowText.initial($0) })
    }

    /// Applies the vector of an answer, and the heads that the next pull must name.
    package mutating func applyVector(of answer: Answer) {
        var named: [SyncID: [String: Int64]] = [:]
        for entry in answer.knowledge {
            named[SyncID(unchecked: entry.owner), default: [:]][entry.knowledgeID] = entry.timeStamp
        }
        vector.merge(named) { _, new in new }
        cutFrom = [:]
        for entry in answer.cutFrom { cutFrom[SyncID(unchecked: entry.owner)] = entry.timeStamp }
    }

    package mutating func drop(_ owner: SyncID) {
        rows = rows.filter { $0.key.owner != owner }
        vector[owner] = nil
        cutFrom[owner] = nil
    }

    private func entry(of owner: SyncID, _ device: String) -> Int64 {
        vector[owner]?[device] ?? vector[owner]?["*"] ?? 0
    }

    /// The timeStamp of the version of a row that the device has; `nil` where it has none.
    package func seen(_ owner: SyncID, _ table: Int, _ id: String) -> Int64? {
        rows[Name(owner: owner, table: table, id: id)]?.timeStamp
    }

    package func head(of owner: SyncID) -> Int64 { vector[owner]?.values.max() ?? 0 }

    /// The owners that a request names.
    package var named: Set<SyncID> { Set(vector.keys).union(cutFrom.keys) }

    /// The fields `knowledge` and, after a page that was cut, `cutFrom` of a request.
    package var requestFields: String {
        let entries = vector.sorted { $0.key < $1.key }.flatMap { owner, entries in
            entries.sorted { $0.key < $1.key }.map {
                #"{"syncId":"\#(owner)","knowledgeId":"\#($0.key)","lastTimeStamp":\#($0.value)}"#
            }
        }
        let knowledge = #""knowledge":[\#(entries.joined(separator: ","))]"#
        if cutFrom.isEmpty { return knowledge }
        let heads = cutFrom.sorted { $0.key < $1.key }.map { #"{"syncId":"\#($0.key)","head":\#($0.value)}"# }
        return knowledge + #","cutFrom":[\#(heads.joined(separator: ","))]"#
    }

    /// The first difference from an owner's rows at its head; `nil` where there is none.
    ///
    /// Rows that the device wrote after that head are not compared.
    package func difference(from owner: SyncID, _ server: [OrderedRow], _ schema: Schema) -> String? {
        let head = head(of: owner)
        var live: Set<Name> = []
        for row in server where !row.isDeleted {
            let name = Name(owner: owner, table: row.key.table, id: row.key.id.text)
            live.insert(name)
            guard let mine = rows[name] else { return "\(schema.tables[row.key.table].name) \(row.key.id) is missing" }
            if mine.timeStamp > head { continue }
            let table = schema.tables[row.key.table]
            let hasTime = table.policy == .lastWriteWins
            guard !mine.isDeleted, mine.timeStamp == row.timeStamp.rawValue, mine.version == row.version,
                mine.knowledgeID == row.knowledgeID.text, mine.values == RowText.values(of: row, in: table),
                !hasTime || mine.updatedAt == RowText.moment(row.updatedAt)
            else { return "\(table.name) \(row.key.id) is \(mine), the server has \(row)" }
        }
        for (name, mine) in rows where name.owner == owner && !mine.isDeleted && mine.timeStamp <= head {
            if !live.contains(name) { return "\(schema.tables[name.table].name) \(name.id) is not on the server" }
        }
        return nil
    }
}
