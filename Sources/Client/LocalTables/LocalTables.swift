import Foundation
import WeirClient

/// The tables of a server as a device creates them that has no app with tables of its own.
///
/// Each has the key `id`, and a column of the type in which the client library sends the values of the server's column.
package struct LocalTables: Sendable, Equatable {
    package struct Table: Sendable, Equatable {
        package let name: String
        package let columns: [Column]
    }

    package struct Column: Sendable, Equatable {
        package let name: String
        package let type: ColumnType
        package let isNullable: Bool
        /// The table whose rows the column names.
        package let references: String?
        /// Rows that are created without a value get one.
        package let hasDefault: Bool
        /// The declared default as SQL; `nil` where the server fills it in.
        let defaultLiteral: String?
    }

    /// Why an answer is no schema.
    package struct Unreadable: Error, CustomStringConvertible {
        package let description = "the answer of GET v1/schema cannot be read: is this the URL of a Weir server?"
    }

    package let tables: [Table]

    /// Reads the body of `GET /v1/schema`.
    package init(schema body: [UInt8]) throws {
        let answer: Any
        let types: [ServerSchema.Table]
        do {
            answer = try JSONSerialization.jsonObject(with: Data(body))
            types = try ServerSchema(answer: body).tables
        } catch {
            throw Unreadable()
        }
        guard let tables = (answer as? [String: Any])?["tables"] as? [[String: Any]] else { throw Unreadable() }
        self.tables = try zip(types, tables).map { table, members in
            guard let columns = members["columns"] as? [[String: Any]] else { throw Unreadable() }
            return Table(name: table.name, columns: zip(table.columns, columns).map { Column($0, $1) })
        }
    }

    package var names: [String] { tables.map(\.name) }

    package func table(_ name: String) -> Table? { tables.first { $0.name == name } }

    /// Creates the tables and columns that a file lacks, in the open transaction; it is repeated when the server has a newer schema.
    ///
    /// An added column can be NULL, since the rows that are there have no value of it yet.
    package func create(in database: Database) throws {
        for table in tables {
            let known = Set(
                try database.map("SELECT name FROM pragma_table_info(?1)", [.text(table.name)]) { $0.string(at: 0) })
            if known.isEmpty {
                let columns = ["id TEXT PRIMARY KEY NOT NULL"] + table.columns.map(\.declaration)
                try database.execute("CREATE TABLE \(quoted(table.name)) (\(columns.joined(separator: ", ")))")
            }
            for column in table.columns where !known.isEmpty && !known.contains(column.name) {
                try database.execute("ALTER TABLE \(quoted(table.name)) ADD COLUMN \(column.addedDeclaration)")
            }
        }
    }
}

extension LocalTables.Column {
    /// - Parameter members: of the column's JSON.
    fileprivate init(_ column: ServerSchema.Table.Column, _ members: [String: Any]) {
        name = column.name
        type = column.type
        isNullable = members["nullable"] as? Bool ?? true
        references = members["references"] as? String
        hasDefault = members["default"] != nil
        switch (column.type, members["default"]) {
        case (.boolean, let value as Bool): defaultLiteral = value ? "1" : "0"
        case (.json, _): defaultLiteral = nil
        case (_, let text as String): defaultLiteral = literal(text)
        case (_, let number as NSNumber): defaultLiteral = "\(number)"
        default: defaultLiteral = nil
        }
    }

    /// Whether a row needs a value.
    package var isRequired: Bool { !isNullable && !hasDefault }

    private var sqlType: String {
        switch type {
        case .integer, .boolean: "INTEGER"
        case .real: "REAL"
        case .bytes: "BLOB"
        default: "TEXT"
        }
    }

    fileprivate var declaration: String {
        let mayBeMissing = isNullable || hasDefault && defaultLiteral == nil
        let parent = references.map { " REFERENCES \(quoted($0)) DEFERRABLE INITIALLY DEFERRED" } ?? ""
        return "\(quoted(name)) \(sqlType)" + (mayBeMissing ? "" : " NOT NULL") + defaultClause + parent
    }

    fileprivate var addedDeclaration: String { "\(quoted(name)) \(sqlType)" + defaultClause }

    private var defaultClause: String { defaultLiteral.map { " DEFAULT \($0)" } ?? "" }
}
