import SyncModel

/// Rows as the HTTP contract spells them.
package enum RowText {
    package static func json(of row: OrderedRow, _ schema: Schema) -> [UInt8] {
        let table = schema.tables[row.key.table]
        var text =
            #"{"table":"\#(table.name)","id":"\#(row.key.id)","syncId":"\#(row.key.owner)","knowledgeId":"\#(row.knowledgeID)""#
            + #","timeStamp":\#(row.timeStamp),"version":\#(row.version),"deleted":\#(row.isDeleted)"#
        if table.policy == .lastWriteWins { text += #","updatedAt":"\#(moment(row.updatedAt))""# }
        let values = zip(table.columns, values(of: row)).map { #""\#($0.name)":\#($1)"# }
        text += #","writer":{"syncId":"\#(row.writer.caller)","knowledgeId":"\#(row.writer.knowledgeID)"}"#
        text += #","values":{\#(values.joined(separator: ","))}}"#
        return Array(text.utf8)
    }

    /// Each column's canonical JSON.
    package static func values(of row: OrderedRow) -> [String] {
        row.values.ranges.map { String(decoding: row.values.bytes[$0], as: UTF8.self) }
    }

    /// The same for all columns of a table: a row has none of those that were added since it was written.
    package static func values(of row: OrderedRow, in table: Table) -> [String] {
        let values = values(of: row)
        return values + table.columns.dropFirst(values.count).map(initial)
    }

    /// What a row has in a column that was never written.
    package static func initial(_ column: Column) -> String {
        String(decoding: column.defaultValue ?? Array("null".utf8), as: UTF8.self)
    }

    package static func moment(_ microseconds: Int64) -> String {
        var bytes: [UInt8] = []
        CanonicalTimestamp.append(microseconds, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension RowValues {
    /// A row's values, and what it has in the columns that were added since it was written.
    package init(of row: OrderedRow, in table: Table) {
        self.init()
        for value in RowText.values(of: row, in: table) { append(Array(value.utf8)) }
    }
}
