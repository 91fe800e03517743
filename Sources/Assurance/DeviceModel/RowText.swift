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

    package static func moment(_ microseconds: Int64) -> String {
        var bytes: [UInt8] = []
        CanonicalTimestamp.append(microseconds, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
