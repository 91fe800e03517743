/// The server's tables, as `GET /v1/schema` describes them.
package struct ServerSchema: Equatable, Sendable {
    package struct Table: Equatable, Sendable {
        package enum Policy: String, Sendable {
            case lastSyncWins
            case lastWriteWins
            case checkBase
        }

        package struct Column: Equatable, Sendable {
            package let name: String
            package let type: ColumnType
            /// What a row has that was last written before the schema had the column, in the type's canonical form; `nil` for NULL.
            package var defaultValue: ValueSpelling.Canonical?
        }

        package let name: String
        package let policy: Policy
        package let columns: [Column]
    }

    package let epoch: String
    package let schemaVersion: String
    package let tables: [Table]

    /// Reads the answer's body.
    ///
    /// - Throws: `JSONReader.Malformed`.
    package init(answer: [UInt8]) throws {
        var reader = JSONReader(answer)
        var (epoch, schemaVersion): (String?, String?)
        var tables: [Table]?
        try reader.object { reader, name in
            switch name {
            case "epoch": epoch = try reader.string()
            case "schemaVersion": schemaVersion = try reader.string()
            case "tables": tables = try reader.elements(Table.init)
            default: try reader.skip()
            }
        }
        try reader.finish()
        guard let epoch, let schemaVersion, let tables else {
            throw reader.malformed("epoch, schemaVersion and tables")
        }
        (self.epoch, self.schemaVersion, self.tables) = (epoch, schemaVersion, tables)
    }

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

extension ServerSchema.Table {
    fileprivate init(_ reader: inout JSONReader) throws {
        var name: String?
        var policy: Policy?
        var columns: [Column]?
        try reader.object { reader, member in
            switch member {
            case "name": name = try reader.string()
            case "policy": policy = Policy(rawValue: try reader.string())
            case "columns": columns = try reader.elements(Column.init)
            default: try reader.skip()
            }
        }
        guard let name, let policy, let columns else { throw reader.malformed("a table's name, policy and columns") }
        self.init(name: name, policy: policy, columns: columns)
    }
}

extension ServerSchema.Table.Column {
    fileprivate init(_ reader: inout JSONReader) throws {
        var (name, typeName): (String?, String?)
        var json: ArraySlice<UInt8>?
        try reader.object { reader, member in
            switch member {
            case "name": name = try reader.string()
            case "type": typeName = try reader.string()
            case "default": json = try reader.text()
            default: try reader.skip()
            }
        }
        guard let name, let typeName else { throw reader.malformed("a column's name and type") }
        let type = ColumnType(named: typeName)
        var defaultValue: ValueSpelling.Canonical?
        if let json, type != .unknown {
            var reader = JSONReader(json)
            defaultValue = try ValueSpelling.Canonical(&reader, type: type)
        }
        if defaultValue == .null { defaultValue = nil }
        self.init(name: name, type: type, defaultValue: defaultValue)
    }
}

extension JSONReader {
    /// Reads an array of what `element` reads.
    fileprivate mutating func elements<Element>(_ element: (inout JSONReader) throws -> Element) throws -> [Element] {
        var elements: [Element] = []
        try array { elements.append(try element(&$0)) }
        return elements
    }
}

extension ColumnType {
    /// - Parameter name: `text`, `decimal(10,2)`.
    fileprivate init(named name: String) {
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
