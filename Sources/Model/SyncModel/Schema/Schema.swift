/// A column's type: the JSON form of its values and their canonical form (client contract).
package enum ColumnType: Sendable, Hashable {
    /// A string, stored as sent: UTF-8 without NUL, not normalized.
    case text
    /// A signed 64-bit integer.
    case integer
    /// A finite 64-bit floating-point number.
    case real
    case boolean
    /// A decimal number with at most `precision` digits, `scale` of them after the point.
    case decimal(precision: Int, scale: Int)
    case uuid
    /// A time in UTC with microseconds.
    case timestamp
    case date
    /// Bytes, as base64 in JSON.
    case bytes
    case json

    /// The name in the schema file and in `/v1/schema`.
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

    /// Whether a maximum length can be declared.
    package var hasLength: Bool {
        switch self {
        case .text, .bytes, .json: true
        default: false
        }
    }
}

/// Which of two changes to a row wins (design: rule 6).
package enum Policy: String, Sendable, Hashable, CaseIterable {
    /// The later arrival wins, column by column. The default.
    case lastSyncWins
    /// The later `updatedAt` wins, an older one is a conflict.
    case lastWriteWins
    /// A change whose `base` is not current is a conflict.
    case checkBase
}

/// What becomes of the rows that reference a row when a client deletes it.
///
/// Ordering deletes no other rows: a face whose protocol says where children go asks its clients for it.
package enum DeleteRule: String, Sendable, Hashable, CaseIterable {
    /// They are made to reference another row, which the request to delete names.
    case reassign
}

package struct Column: Sendable, Hashable {
    /// `[A-Za-z_][A-Za-z0-9_]{0,62}`, a valid name in every store.
    package let name: String
    package let type: ColumnType
    package let isNullable: Bool
    /// The canonical JSON that a creation without this column stores; `nil` when none is declared.
    package let defaultValue: [UInt8]?
    /// In characters (Unicode scalars) of a text, or bytes of a `bytes` value or of canonical JSON.
    package let maximumLength: Int?
    /// The table that this column references.
    package let references: String?
    /// What becomes of rows when the row is deleted that this column of theirs names; `nil`: they keep its id.
    package let onDelete: DeleteRule?

    /// ``Schema/init(declaring:)`` validates it.
    package init(
        name: String, type: ColumnType, isNullable: Bool = true, defaultValue: [UInt8]? = nil,
        maximumLength: Int? = nil, references: String? = nil, onDelete: DeleteRule? = nil
    ) {
        self.name = name
        self.type = type
        self.isNullable = isNullable
        self.defaultValue = defaultValue
        self.maximumLength = maximumLength
        self.references = references
        self.onDelete = onDelete
    }

    /// Whether a creation must write this column.
    package var isRequired: Bool { !isNullable && defaultValue == nil }
}

/// A table that devices sync.
package struct Table: Sendable, Hashable {
    /// Same rule as for a column's name.
    package let name: String
    package let policy: Policy
    /// In the order of the values in records: columns of older versions first.
    package let columns: [Column]

    package init(name: String, policy: Policy = .lastSyncWins, columns: [Column]) {
        self.name = name
        self.policy = policy
        self.columns = columns
        columnIndex = NameIndex(columns.map(\.name))
    }

    /// The index of the column with this name, compared byte by byte.
    package func column(named name: RawSpan) -> Int? { columnIndex[name] }

    private let columnIndex: NameIndex
}

/// One version of the tables that devices sync.
///
/// New tables and columns are appended after those of older versions, so a row written under one version can be read
/// under every later one: columns that it lacks have their defaults.
package struct Schema: Sendable, Hashable {
    /// In the order of their indexes in records: tables of older versions first.
    package let tables: [Table]

    package init(tables: [Table]) {
        self.tables = tables
        tableIndex = NameIndex(tables.map(\.name))
    }

    /// The index of the table with this name, compared byte by byte.
    package func table(named name: RawSpan) -> Int? { tableIndex[name] }

    /// For each table the length of the longest chain of references to parents, 0 without references.
    ///
    /// A client that writes tables by rising rank writes parents first.
    ///
    /// References of a table to itself are ignored. Cycles of several tables are rejected when a schema is validated.
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

/// Indexes by name, compared as bytes.
///
/// A sorted list suffices: a schema has few names.
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
        // Every offset is below `right.byteCount`.
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
