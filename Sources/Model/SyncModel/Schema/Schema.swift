/// The type of a column: how its values are spelled in JSON and what their canonical form is (client contract).
package enum ColumnType: Sendable, Hashable {
    /// A string, stored as sent: UTF-8 without NUL, not normalised.
    case text
    /// A signed 64-bit integer.
    case integer
    /// A finite 64-bit floating-point number.
    case real
    /// true or false.
    case boolean
    /// A decimal number with at most `precision` digits, `scale` of them after the point.
    case decimal(precision: Int, scale: Int)
    /// A UUID in lower case.
    case uuid
    /// A moment in UTC with microseconds.
    case timestamp
    /// A calendar date.
    case date
    /// Bytes, as base64 in JSON.
    case bytes
    /// Any JSON value.
    case json

    /// The name as the schema file and `/v1/schema` spell it.
    package var name: String {
        switch self {
        case .text: "text"
        case .integer: "integer"
        case .real: "real"
        case .boolean: "boolean"
        case .decimal(let precision, let scale): "decimal(\(precision),\(scale))"
        case .uuid: "uuid"
        case .timestamp: "timestamp"
        case .date: "date"
        case .bytes: "bytes"
        case .json: "json"
        }
    }

    /// Whether the schema may bound the size of this type's values.
    package var hasLength: Bool {
        switch self {
        case .text, .bytes, .json: true
        default: false
        }
    }
}

/// Which of two changes to a row wins (design: rule 6 for one change).
package enum Policy: String, Sendable, Hashable, CaseIterable {
    /// The later arrival wins, column by column. The default.
    case lastSyncWins
    /// The later `updatedAt` wins, an older one is a conflict.
    case lastWriteWins
    /// A change whose `base` is not current is a conflict.
    case checkBase
}

/// A column of a table.
package struct Column: Sendable, Hashable {
    /// The name, `[A-Za-z_][A-Za-z0-9_]{0,62}`, so that every store can take it.
    package let name: String
    /// The type.
    package let type: ColumnType
    /// Whether NULL is a value of it.
    package let isNullable: Bool
    /// The canonical JSON that a creation without this column gets; `nil` where none is declared.
    package let defaultValue: [UInt8]?
    /// The largest size: characters (Unicode scalars) of a text, bytes of a `bytes` value or of canonical JSON.
    package let maximumLength: Int?
    /// The table whose row this column's value names.
    package let references: String?

    /// Declares a column; its parts are checked by ``Schema``.
    package init(
        name: String, type: ColumnType, isNullable: Bool = true, defaultValue: [UInt8]? = nil,
        maximumLength: Int? = nil, references: String? = nil
    ) {
        self.name = name
        self.type = type
        self.isNullable = isNullable
        self.defaultValue = defaultValue
        self.maximumLength = maximumLength
        self.references = references
    }

    /// Whether a creation must give this column: it is not nullable and has no default.
    package var isRequired: Bool { !isNullable && defaultValue == nil }
}

/// A table that devices sync.
package struct Table: Sendable, Hashable {
    /// The name, spelled as a column's.
    package let name: String
    /// Who wins when two changes meet.
    package let policy: Policy
    /// The columns in the order in which messages carry their values: those of older versions first.
    package let columns: [Column]

    /// Declares a table.
    package init(name: String, policy: Policy = .lastSyncWins, columns: [Column]) {
        self.name = name
        self.policy = policy
        self.columns = columns
        columnIndex = NameIndex(columns.map(\.name))
    }

    /// The position of the column with this name, compared byte by byte.
    package func column(named name: RawSpan) -> Int? { columnIndex[name] }

    private let columnIndex: NameIndex
}

/// One version of the tables that devices sync.
///
/// Tables and columns only ever come behind those of older versions, so a row written under one reads under every later
/// one: the columns it lacks have their defaults.
package struct Schema: Sendable, Hashable {
    /// The tables in the order in which messages number them: those of older versions first.
    package let tables: [Table]

    /// Makes a schema of tables that were checked when their file was read.
    package init(tables: [Table]) {
        self.tables = tables
        tableIndex = NameIndex(tables.map(\.name))
    }

    /// The position of the table with this name, compared byte by byte.
    package func table(named name: RawSpan) -> Int? { tableIndex[name] }

    /// For each table the length of the longest chain of references to its parents, 0 where there are none: a client that
    /// writes tables by rising rank writes parents first.
    ///
    /// A table's references to itself do not count; circles of several tables are refused where schemas are checked.
    package var ranks: [Int] {
        var ranks: [Int: Int] = [:]
        func rank(_ index: Int) -> Int {
            if let known = ranks[index] { return known }
            ranks[index] = 0
            let parents = tables[index].columns.compactMap(\.references).compactMap(tableIndex.position)
            let result = parents.filter { $0 != index }.map { rank($0) + 1 }.max() ?? 0
            ranks[index] = result
            return result
        }
        return tables.indices.map(rank)
    }

    private let tableIndex: NameIndex
}

/// Positions of names, looked up by their bytes: a sorted list, since a schema's names are few.
struct NameIndex: Sendable, Hashable {
    private let entries: [(name: [UInt8], position: Int)]

    init(_ names: [String]) {
        entries = names.enumerated().map { (Array($1.utf8), $0) }
            .sorted { $0.name.lexicographicallyPrecedes($1.name) }
    }

    func position(_ name: String) -> Int? {
        var name = name
        return name.withUTF8 { self[$0.span.bytes] }
    }

    subscript(name: RawSpan) -> Int? {
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            switch compare(entries[middle].name, name) {
            case 0: return entries[middle].position
            case ..<0: low = middle + 1
            default: high = middle
            }
        }
        return nil
    }

    private func compare(_ left: [UInt8], _ right: RawSpan) -> Int {
        // Every offset read lies below `right.byteCount`.
        let shared = min(left.count, right.byteCount)
        for index in 0..<shared {
            let other = right.unsafeLoad(fromByteOffset: index, as: UInt8.self)
            if left[index] != other { return Int(left[index]) - Int(other) }
        }
        return left.count - right.byteCount
    }

    static func == (left: Self, right: Self) -> Bool {
        left.entries.elementsEqual(right.entries) { $0 == $1 }
    }

    func hash(into hasher: inout Hasher) {
        for entry in entries { hasher.combine(entry.name) }
    }
}
