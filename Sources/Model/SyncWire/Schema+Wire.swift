import Digest
import SyncModel

/// `weir.v1.Schema` (control.proto).
extension Schema: WireEncodable, WireDecodable {
    package init(from reader: inout WireReader) throws(WireError) {
        var tables: [Table] = []
        while let field = try reader.next() {
            switch field.number {
            case 1: tables.append(try reader.message(field, Table.init(from:)))
            default: try reader.skip(field)
            }
        }
        self.init(tables: tables)
    }

    package func write(to writer: inout WireWriter) {
        for table in tables { writer.message(1) { table.write(to: &$0) } }
    }
}

/// `weir.v1.Table`.
extension Table: WireEncodable, WireDecodable {
    package init(from reader: inout WireReader) throws(WireError) {
        var name: String?
        var policy: Policy?
        var columns: [Column] = []
        while let field = try reader.next() {
            switch field.number {
            case 1: name = try reader.identifier(field)
            case 2: policy = try reader.member(field)
            case 3: columns.append(try reader.message(field, Column.init(from:)))
            default: try reader.skip(field)
            }
        }
        guard let name else { throw reader.missing(1) }
        guard let policy else { throw reader.missing(2) }
        self.init(name: name, policy: policy, columns: columns)
    }

    package func write(to writer: inout WireWriter) {
        writer.text(1, name)
        writer.member(2, policy)
        for column in columns { writer.message(3) { column.write(to: &$0) } }
    }
}

/// `weir.v1.Column`.
extension Column: WireEncodable, WireDecodable {
    package init(from reader: inout WireReader) throws(WireError) {
        var name: String?
        var number: ColumnType.Number?
        var precision = 0
        var scale = 0
        var isNullable = false
        var defaultValue: [UInt8]?
        var maximumLength: Int?
        var references: String?
        var onDelete: DeleteRule?
        while let field = try reader.next() {
            switch field.number {
            case 1: name = try reader.identifier(field)
            case 2: number = try reader.member(field)
            case 3: precision = try reader.count(field)
            case 4: scale = try reader.count(field)
            case 5: isNullable = try reader.flag(field)
            case 6:
                let value = try reader.bytes(field)
                guard !value.isEmpty else { throw reader.failure(.invalidForm, field) }
                defaultValue = value
            case 7: maximumLength = try reader.count(field)
            case 8: references = try reader.identifier(field)
            case 9: onDelete = try reader.member(field)
            default: try reader.skip(field)
            }
        }
        guard let name else { throw reader.missing(1) }
        guard let number else { throw reader.missing(2) }
        if number == .decimal {
            guard precision > 0 else { throw reader.missing(3) }
            guard scale <= precision else { throw WireError(.outOfRange, path: [4], offset: reader.offset) }
        }
        self.init(
            name: name, type: ColumnType(number, precision: precision, scale: scale), isNullable: isNullable,
            defaultValue: defaultValue, maximumLength: maximumLength, references: references,
            onDelete: onDelete)
    }

    package func write(to writer: inout WireWriter) {
        writer.text(1, name)
        writer.member(2, type.number)
        if case .decimal(let precision, let scale) = type {
            writer.number(3, precision)
            writer.number(4, scale)
        }
        writer.flag(5, isNullable)
        writer.presentBytes(6, defaultValue)
        writer.present(7, maximumLength.map(Int64.init))
        if let references { writer.element(8, references) }
        if let onDelete { writer.member(9, onDelete) }
    }
}

extension ColumnType {
    /// The numbers of `Column.Type`.
    fileprivate enum Number: UInt64, CaseIterable, WireEnum {
        case text = 1
        case integer = 2
        case real = 3
        case boolean = 4
        case decimal = 5
        case uuid = 6
        case timestamp = 7
        case date = 8
        case bytes = 9
        case json = 10

        var wireNumber: UInt64 { rawValue }
    }

    fileprivate var number: Number {
        switch self {
        case .text: .text
        case .integer: .integer
        case .real: .real
        case .boolean: .boolean
        case .decimal: .decimal
        case .uuid: .uuid
        case .timestamp: .timestamp
        case .date: .date
        case .bytes: .bytes
        case .json: .json
        }
    }

    fileprivate init(_ number: Number, precision: Int, scale: Int) {
        switch number {
        case .text: self = .text
        case .integer: self = .integer
        case .real: self = .real
        case .boolean: self = .boolean
        case .decimal: self = .decimal(precision: precision, scale: scale)
        case .uuid: self = .uuid
        case .timestamp: self = .timestamp
        case .date: self = .date
        case .bytes: self = .bytes
        case .json: self = .json
        }
    }
}

extension WireReader {
    /// The name of a table or column: `[A-Za-z_][A-Za-z0-9_]{0,62}`.
    fileprivate mutating func identifier(_ field: Field) throws(WireError) -> String {
        let name = try text(field)
        let isName = name.utf8.enumerated().allSatisfy { position, byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"): true
            case UInt8(ascii: "0")...UInt8(ascii: "9"): position > 0
            default: false
            }
        }
        guard isName, (1...63).contains(name.utf8.count) else { throw failure(.invalidForm, field) }
        return name
    }
}

extension SchemaVersion {
    /// The hash by which records and clients name a schema: the first 32 lower-case hexadecimal digits of the SHA-256
    /// of its encoding, which contains everything that is declared, order included.
    package static func hash(of schema: Schema) -> String {
        hexadecimal(SHA256.digest(of: schema.encode()).prefix(16))
    }

    package init(ordinal: Int, of schema: Schema) {
        self.init(ordinal: ordinal, hash: Self.hash(of: schema))
    }
}
