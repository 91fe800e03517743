import Foundation
import LocalTables
import WeirClient
import WeirTesting

/// What a user may do to the tables of any schema: rows are created, changed and deleted, few ids for many conflicts.
struct RandomEdits: Sendable {
    /// A statement, and what it writes that no other does.
    struct Edit: Sendable {
        let sql: String
        let values: [SQLValue]
        let mark: String?
    }

    /// Rows of each table.
    static let rows = 40

    private let tables: [LocalTables.Table]
    private let device: Int
    private var random: TestRandom

    init(_ tables: LocalTables, device: Int, random: TestRandom) {
        self.tables = tables.tables
        self.device = device
        self.random = random
    }

    /// The column of a table in which each edit writes a text of its own.
    static func markColumn(of table: LocalTables.Table) -> String? {
        table.columns.first { $0.type == .text && $0.references == nil }?.name
    }

    mutating func number(in range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    mutating func next() -> Edit {
        let table = tables[number(in: 0...tables.count - 1)]
        let id = SQLValue.text(Self.id(number(in: 0...Self.rows - 1), of: table.name))
        if random.chance(10) {
            return Edit(sql: "DELETE FROM \(quoted(table.name)) WHERE id = ?1", values: [id], mark: nil)
        }
        // Different in each process, too, as a folder is continued by another one.
        let mark = "\(device)-\(String(UInt64(Date().timeIntervalSince1970 * 1_000_000), radix: 36))"
        let markColumn = Self.markColumn(of: table)
        let columns = table.columns.filter { $0.isRequired || $0.name == markColumn || random.chance(40) }
        let values = columns.map { $0.name == markColumn ? .text(mark) : value(of: $0) }
        let names = (["id"] + columns.map(\.name)).map(quoted)
        let parameters = (["?1"] + columns.enumerated().map { Self.parameter($0 + 2, of: $1) }).joined(separator: ", ")
        // Users choose a parent among those that there are.
        let parents = columns.filter(\.isRequired).compactMap(\.references)
            .map { "EXISTS (SELECT 1 FROM \(quoted($0)))" }
        let condition = parents.isEmpty ? "true" : parents.joined(separator: " AND ")
        let updates = names.dropFirst().map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
        let conflict = updates.isEmpty ? "NOTHING" : "UPDATE SET \(updates)"
        return Edit(
            sql: """
                INSERT INTO \(quoted(table.name)) (\(names.joined(separator: ", "))) SELECT \(parameters) WHERE \(condition)
                ON CONFLICT (id) DO \(conflict)
                """, values: [id] + values, mark: markColumn == nil ? nil : mark)
    }

    /// The value of a column; for a reference the nearest row that there is.
    private static func parameter(_ number: Int, of column: LocalTables.Column) -> String {
        guard let parent = column.references.map(quoted) else { return "?\(number)" }
        return """
            CASE WHEN ?\(number) IS NOT NULL THEN coalesce(
            (SELECT id FROM \(parent) WHERE id >= ?\(number) ORDER BY id LIMIT 1), (SELECT max(id) FROM \(parent))) END
            """
    }

    private static func id(_ number: Int, of table: String) -> String { "\(table)-\(number)" }

    /// A value in the form that the server has of it, so that files can be compared byte by byte.
    private mutating func value(of column: LocalTables.Column) -> SQLValue {
        if column.isNullable, random.chance(15) { return .null }
        if let parent = column.references { return .text(Self.id(number(in: 0...Self.rows - 1), of: parent)) }
        let number = number(in: 0...9)
        switch column.type {
        case .integer: return .integer(Int64(number))
        case .boolean: return .integer(Int64(number % 2))
        case .real: return .real(Double(number) + 0.5)
        case .decimal: return .text("\(number)")
        case .uuid: return .text("00000000-0000-4000-8000-00000000000\(number)")
        case .timestamp: return .text("2026-01-0\(number % 9 + 1)T03:04:05.000000Z")
        case .date: return .text("2026-01-0\(number % 9 + 1)")
        case .bytes: return .blob([UInt8(number)])
        case .json: return .text(#"{"n":\#(number)}"#)
        case .text, .unknown: return .text("w\(number)")
        }
    }
}
