import Foundation

/// The server's tables, as `GET /v1/schema` describes them.
package struct ServerSchema: Equatable, Sendable, Decodable {
    package struct Table: Equatable, Sendable, Decodable {
        package enum Policy: String, Sendable, Decodable {
            case lastSyncWins
            case lastWriteWins
            case checkBase
        }

        package struct Column: Equatable, Sendable, Decodable {
            package let name: String
            package let type: ColumnType
        }

        package let name: String
        package let policy: Policy
        package let columns: [Column]
    }

    package let epoch: String
    package let schemaVersion: String
    package let tables: [Table]

    /// Reads the answer's body.
    package init(answer: Data) throws { self = try JSONDecoder().decode(ServerSchema.self, from: answer) }

    /// The table that the app's table is synced with; SQLite's names ignore the case of ASCII letters.
    func table(for name: String) -> Table? {
        tables.first { $0.name == name } ?? tables.first { foldedName($0.name) == foldedName(name) }
    }
}

extension ServerSchema.Table {
    /// Whether values of a column can be sent.
    func isKnown(_ name: String) -> Bool { column(for: name).map { $0.type != .unknown } ?? false }

    func column(for name: String) -> Column? {
        columns.first { $0.name == name } ?? columns.first { foldedName($0.name) == foldedName(name) }
    }
}

/// The contract's types of columns.
package enum ColumnType: Equatable, Sendable {
    case text
    case integer
    case real
    case boolean
    case decimal
    case uuid
    case timestamp
    case date
    case bytes
    case json
    /// One that a newer server has. Its columns are not sent.
    case unknown
}

extension ColumnType: Decodable {
    /// Reads the type's name: `text`, `decimal(10,2)`.
    package init(from decoder: any Decoder) throws {
        let name = try decoder.singleValueContainer().decode(String.self)
        self =
            switch name.prefix(while: { $0 != "(" }) {
            case "text": .text
            case "integer": .integer
            case "real": .real
            case "boolean": .boolean
            case "decimal": .decimal
            case "uuid": .uuid
            case "timestamp": .timestamp
            case "date": .date
            case "bytes": .bytes
            case "json": .json
            default: .unknown
            }
    }
}
