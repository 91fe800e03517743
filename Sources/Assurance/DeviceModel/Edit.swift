import SyncModel

/// One change as a device sends it.
package struct Edit {
    package let table: Int
    package let owner: SyncID
    package let id: String
    package let isDelete: Bool
    /// The columns that are sent, by index, as JSON.
    package let values: [Int: String]
    /// The same in canonical form.
    private let canonical: [Int: String]
    /// Whether every value has its column's type.
    package let isValid: Bool
    package let base: Int64?
    package let ifBase: Bool
    package let isForLiveRow: Bool
    package let ifUnchanged: Bool
    package let updatedAt: String?
    package var changeID: String?

    /// - Parameter values: in canonical form.
    package init(
        table: Int, owner: SyncID, id: String, isDelete: Bool = false, values: [Int: String], base: Int64? = nil,
        ifBase: Bool = false, updatedAt: String? = nil
    ) {
        self.table = table
        self.owner = owner
        self.id = id
        self.isDelete = isDelete
        self.values = values
        canonical = values
        isValid = true
        self.base = base
        self.ifBase = ifBase
        isForLiveRow = false
        ifUnchanged = false
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
        var values: [Int: Value] = [:]
        for (index, column) in columns.enumerated() where isFull || random.once(in: 3) {
            values[index] = Self.value(of: column.type, random)
        }
        if isDelete && !random.once(in: 4) { values = [:] }
        self.values = values.mapValues(\.sent)
        canonical = values.mapValues(\.canonical)
        isValid = values.values.allSatisfy(\.isValid)
        switch random.number(0...9) {
        case 0: base = nil
        case 1: base = 0
        case 2: base = known.map { max(0, $0 + Int64(random.number(-3...3))) }
        default: base = known ?? 0
        }
        ifBase = random.once(in: 4)
        isForLiveRow = ifBase && random.once(in: 2)
        ifUnchanged = random.once(in: 6)
        if schema.tables[table].policy == .lastWriteWins, !random.once(in: 5) {
            let time = now + Int64(random.number(-4_000_000...1_000_000))
            // Some are equal.
            updatedAt = RowText.moment(random.once(in: 2) ? time / 1_000_000 * 1_000_000 : time)
        } else {
            updatedAt = nil
        }
    }

    /// The creation of a row that no other device edits.
    package init(newRow id: String, of owner: SyncID, _ schema: Schema, _ random: SeededGenerator) {
        table = random.number(0...schema.tables.count - 1)
        self.owner = owner
        self.id = id
        isDelete = false
        base = 0
        ifBase = false
        isForLiveRow = false
        ifUnchanged = false
        updatedAt = nil
        let values = schema.tables[table].columns.map { Self.value(of: $0.type, random, isValid: true) }
        self.values = Dictionary(uniqueKeysWithValues: values.enumerated().map { ($0.offset, $0.element.sent) })
        canonical = Dictionary(uniqueKeysWithValues: values.enumerated().map { ($0.offset, $0.element.canonical) })
        isValid = true
    }

    private init(
        _ other: Edit, owner: SyncID? = nil, values: [Int: String], canonical: [Int: String], base: Int64?
    ) {
        table = other.table
        self.owner = owner ?? other.owner
        changeID = other.changeID
        id = other.id
        isDelete = other.isDelete
        self.values = values
        self.canonical = canonical
        isValid = other.isValid
        self.base = base
        ifBase = other.ifBase
        isForLiveRow = other.isForLiveRow
        ifUnchanged = other.ifUnchanged
        updatedAt = other.updatedAt
    }

    /// The same edit with another value or base.
    package func changed(_ random: SeededGenerator, _ schema: Schema) -> Edit {
        let column = values.keys.min()
        guard isValid, let column, random.once(in: 2) else {
            return Edit(self, values: values, canonical: canonical, base: (base ?? 0) + 1)
        }
        var (values, canonical) = (values, canonical)
        let type = schema.tables[table].columns[column].type
        while canonical[column] == self.canonical[column] {
            let value = Self.value(of: type, random, isValid: true)
            (values[column], canonical[column]) = (value.sent, value.canonical)
        }
        return Edit(self, values: values, canonical: canonical, base: base)
    }

    /// The same edit for another owner.
    package func moved(to owner: SyncID) -> Edit {
        Edit(self, owner: owner, values: values, canonical: canonical, base: base)
    }

    /// Whether a schema has the table and the columns that are sent.
    package func isWritable(in schema: Schema) -> Bool {
        schema.tables.indices.contains(table)
            && values.keys.allSatisfy { schema.tables[table].columns.indices.contains($0) }
    }

    package func json(_ schema: Schema) -> String {
        let table = schema.tables[table]
        var text = #"{"table":"\#(table.name)","id":"\#(id)","syncId":"\#(owner)""#
        if isDelete { text += #","deleted":true"# }
        let sent = values.keys.sorted().map { #""\#(table.columns[$0].name)":\#(values[$0]!)"# }
        text += #","values":{\#(sent.joined(separator: ","))}"#
        if let base { text += #","base":\#(base)"# }
        if ifBase { text += isForLiveRow ? #","ifBase":"live""# : #","ifBase":true"# }
        if ifUnchanged { text += #","ifUnchanged":true"# }
        if let updatedAt { text += #","updatedAt":"\#(updatedAt)""# }
        if let changeID { text += #","changeId":"\#(changeID)""# }
        return text + "}"
    }

    /// What the edit says, whatever its spelling; of a refused one its JSON.
    package var content: String {
        let values = canonical.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        return
            "\(table) \(owner) \(id) \(isDelete) \(values) \(base ?? 0) \(ifBase) \(isForLiveRow) \(ifUnchanged) \(updatedAt ?? "") "
            + (changeID ?? "")
    }

    private struct Value {
        let sent: String
        let canonical: String
        var isValid = true
    }

    /// A value, mostly in its canonical form; some have another spelling or the wrong type.
    private static func value(of type: ColumnType, _ random: SeededGenerator, isValid: Bool = false) -> Value {
        if !isValid, random.once(in: 80) { return Value(sent: "[1,2]", canonical: "[1,2]", isValid: type == .json) }
        let number = random.number(0...99)
        let isOther = random.once(in: 6)
        func value(_ canonical: String, other: String? = nil) -> Value {
            Value(sent: isOther ? other ?? canonical : canonical, canonical: canonical)
        }
        switch type {
        case .text: return value("\"t\(number)\"")
        case .integer: return value("\(number)", other: "\"\(number)\"")
        case .real: return value("\(number).5", other: "\(number).50")
        case .boolean: return value(number % 2 == 0 ? "true" : "false")
        case .decimal: return value("\"\(number).50\"", other: "\"\(number).5\"")
        case .uuid:
            let end = String(number + 100)
            return value(
                "\"0a000000-0000-4000-8000-000000000\(end)\"", other: "\"0A000000-0000-4000-8000-000000000\(end)\"")
        case .timestamp:
            return value(
                "\"2026-02-03T04:05:06.00000\(number / 10)Z\"",
                other: "\"2026-02-03T05:05:06.00000\(number / 10)+01:00\"")
        case .date: return value("\"2026-02-\(number % 18 + 10)\"")
        case .bytes: return value("\"AA\(number % 10)C\"")
        case .json: return value("{\"a\":\(number)}", other: "{ \"a\": \(number) }")
        }
    }
}
