import Commands
import Foundation
import LocalTables
import WeirClient

/// Values as a person writes and reads them.
enum ColumnText {
    /// Reads `title=Buy milk`; `title` alone sets NULL.
    static func assignment(_ text: String, of table: LocalTables.Table) throws(UsageError) -> (String, SQLValue) {
        let equals = text.firstIndex(of: "=")
        let name = String(text[..<(equals ?? text.endIndex)])
        guard let column = table.columns.first(where: { $0.name == name }) else {
            let names = table.columns.map(\.name).joined(separator: ", ")
            throw UsageError("\(table.name) has no column \(name); its columns are \(names)")
        }
        guard let equals else { return (name, .null) }
        return (name, try value(String(text[text.index(after: equals)...]), of: column))
    }

    /// Times, dates, numbers with decimals and uuids are stored as they are written: the server judges them.
    private static func value(_ text: String, of column: LocalTables.Column) throws(UsageError) -> SQLValue {
        func refuse(_ expected: String) -> UsageError { UsageError("\(column.name) is \(expected), not \(text)") }
        switch column.type {
        case .integer:
            guard let number = Int64(text) else { throw refuse("a whole number") }
            return .integer(number)
        case .real:
            guard let number = Double(text), number.isFinite else { throw refuse("a number") }
            return .real(number)
        case .boolean:
            switch text {
            case "true", "yes", "1": return .integer(1)
            case "false", "no", "0": return .integer(0)
            default: throw refuse("true or false")
            }
        case .bytes:
            guard let bytes = Data(base64Encoded: text) else { throw refuse("bytes in base64") }
            return .blob(Array(bytes))
        default: return .text(text)
        }
    }

    /// A value in a table of rows.
    static func text(_ value: SQLValue, _ type: ColumnType?) -> String {
        switch value {
        case .null: "-"
        case .integer(let number) where type == .boolean: number == 0 ? "false" : "true"
        case .blob(let bytes): Data(bytes).base64EncodedString()
        case .text(let bytes): String(decoding: bytes, as: UTF8.self)
        case .integer, .real: value.description
        }
    }

    /// A value for `JSONSerialization`.
    static func json(_ value: SQLValue, _ type: ColumnType?) -> Any {
        switch value {
        case .null: return NSNull()
        case .integer(let number): return type == .boolean ? number != 0 : number
        case .real(let number): return number
        case .text, .blob: break
        }
        if type == .json, case .text(let bytes) = value {
            // What is no JSON is shown as it is.
            do { return try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed) } catch {}
        }
        return text(value, type)
    }
}

extension LocalTables.Table {
    func type(of column: String) -> ColumnType? { columns.first { $0.name == column }?.type }

    /// A row as JSON.
    func json(_ row: ObservedRow) -> [String: Any] {
        let values = zip(row.columns, row.values).map { ($0, ColumnText.json($1, type(of: $0))) }
        return Dictionary(values) { $1 }
    }
}

/// What is printed.
enum Printed {
    static func json(_ value: Any) throws {
        let bytes = try JSONSerialization.data(
            withJSONObject: value, options: [.sortedKeys, .fragmentsAllowed, .withoutEscapingSlashes])
        Output.write(String(decoding: bytes, as: UTF8.self))
    }

    /// A line of text.
    static func line(_ text: String) { Output.write(visible(text)) }

    /// A text whose control characters are shown: what others have written does nothing to the terminal, and stays in its line.
    private static func visible(_ text: String) -> String {
        let isControl = { (scalar: Unicode.Scalar) in scalar.properties.generalCategory == .control }
        if !text.unicodeScalars.contains(where: isControl) { return text }
        return text.unicodeScalars.map { isControl($0) ? $0.escaped(asASCII: true) : String($0) }.joined()
    }

    /// `1 row is`, `2 rows are`.
    static func rows(_ count: Int) -> String { count == 1 ? "1 row is" : "\(count) rows are" }

    /// Columns of equal width, under their names.
    static func table(_ names: [String], _ rows: [[String]]) {
        // A long text does not push the others off the screen.
        let lines = ([names] + rows).map { $0.map(visible).map { $0.count > 40 ? $0.prefix(39) + "…" : $0 } }
        let widths = names.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
        for line in lines {
            let cells = zip(line, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
            let text = cells.joined(separator: "  ")
            Output.write(
                String(text.prefix(upTo: text.lastIndex { $0 != " " }.map { text.index(after: $0) } ?? text.startIndex))
            )
        }
    }
}
