import SyncModel

/// One change as a device sends it.
package struct Edit {
    package let table: Int
    package let owner: SyncID
    package let id: String
    package let isDelete: Bool
    /// The columns that are sent, by index, as JSON.
    package let values: [Int: String]
    package let base: Int64?
    package let ifBase: Bool
    package let updatedAt: String?

    package init(
        table: Int, owner: SyncID, id: String, isDelete: Bool = false, values: [Int: String], base: Int64? = nil,
        ifBase: Bool = false, updatedAt: String? = nil
    ) {
        self.table = table
        self.owner = owner
        self.id = id
        self.isDelete = isDelete
        self.values = values
        self.base = base
        self.ifBase = ifBase
        self.updatedAt = updatedAt
    }

    /// A random edit of one of few rows.
    ///
    /// - Parameters:
    ///   - rowCount: how many ids each table has; with few, edits conflict.
    ///   - seen: the timeStamp of the version that the device has.
    ///   - now: microseconds since 1970.
    package init(
        _ random: SeededGenerator, _ schema: Schema, rowCount: Int, owner: SyncID, seen: (Int, String) -> Int64?,
        now: Int64
    ) {
        table = random.number(0...schema.tables.count - 1)
        self.owner = owner
        id = "r\(random.number(1...rowCount))"
        let known = seen(table, id)
        isDelete = random.once(in: 6)
        let columns = schema.tables[table].columns
        let isFull = known == nil ? !random.once(in: 6) : random.once(in: 3)
        var values: [Int: String] = [:]
        for (index, column) in columns.enumerated() where isFull || random.once(in: 3) {
            values[index] = Self.value(of: column.type, random)
        }
        self.values = isDelete && !random.once(in: 4) ? [:] : values
        switch random.number(0...9) {
        case 0: base = nil
        case 1: base = 0
        case 2: base = known.map { max(0, $0 - Int64(random.number(0...3))) }
        default: base = known ?? 0
        }
        ifBase = random.once(in: 6)
        if schema.tables[table].policy == .lastWriteWins, !random.once(in: 5) {
            updatedAt = RowText.moment(now + Int64(random.number(-4_000_000...1_000_000)))
        } else {
            updatedAt = nil
        }
    }

    package func json(_ schema: Schema) -> String {
        let table = schema.tables[table]
        var text = #"{"table":"\#(table.name)","id":"\#(id)","syncId":"\#(owner)""#
        if isDelete { text += #","deleted":true"# }
        let sent = values.keys.sorted().map { #""\#(table.columns[$0].name)":\#(values[$0]!)"# }
        text += #","values":{\#(sent.joined(separator: ","))}"#
        if let base { text += #","base":\#(base)"# }
        if ifBase { text += #","ifBase":true"# }
        if let updatedAt { text += #","updatedAt":"\#(updatedAt)""# }
        return text + "}"
    }

    /// A value, mostly in its canonical form; some have another spelling or the wrong type.
    private static func value(of type: ColumnType, _ random: SeededGenerator) -> String {
        if random.once(in: 80) { return "[1" + ",2]" }
        let number = random.number(0...99)
        let isOther = random.once(in: 6)
        switch type {
        case .text: return "\"t\(number)\""
        case .integer: return isOther ? "\"\(number)\"" : "\(number)"
        case .real: return isOther ? "\(number).50" : "\(number).5"
        case .boolean: return number % 2 == 0 ? "true" : "false"
        case .decimal: return isOther ? "\"\(number).5\"" : "\"\(number).50\""
        case .uuid:
            let end = String(number + 100)
            return isOther
                ? "\"0A000000-0000-4000-8000-000000000\(end)\"" : "\"0a000000-0000-4000-8000-000000000\(end)\""
        case .timestamp:
            return isOther
                ? "\"2026-02-03T04:05:06.0000\(number / 10)+01:00\"" : "\"2026-02-03T04:05:06.00000\(number / 10)Z\""
        case .date: return "\"2026-02-\(number % 18 + 10)\""
        case .bytes: return "\"AA\(number % 10)C\""
        case .json: return isOther ? "{ \"a\": \(number) }" : "{\"a\":\(number)}"
        }
    }
}
