/// A table of the app, as the file's schema describes it.
package struct TableDefinition: Equatable {
    package struct Column: Equatable {
        package let name: String
        package let affinity: Affinity
        var isNotNull = false
        /// The expression of its DEFAULT clause.
        var defaultValue: String?

        /// Whether its default may call a function, be it one of the app's, which other connections lack.
        var mayCallByDefault: Bool { defaultValue?.contains("(") ?? false }
    }

    /// What makes rows unique besides the primary key: a UNIQUE constraint, a unique index, or a key with a collation.
    struct UniqueKey: Equatable {
        struct Term: Equatable {
            let column: String
            let collation: String
        }

        /// An expression of an index, and the collation by which its values are compared.
        struct Value: Equatable {
            let expression: IndexExpression
            let collation: String
        }

        /// Those that are columns.
        let terms: [Term]
        /// Those that are expressions; none where not each of them can be compared.
        ///
        /// Then the columns make more rows equal than SQLite replaces.
        let values: [Value]
        /// Rows that do not meet it may share a key.
        let condition: IndexExpression?

        func mayName(_ column: String) -> Bool {
            terms.contains { foldedName($0.column) == foldedName(column) }
                || (values.map(\.expression) + (condition.map { [$0] } ?? [])).contains { $0.mayName(column) }
        }
    }

    /// A column that names a row of another table, or of the same.
    struct Reference: Equatable {
        let column: String
        let parent: String
    }

    /// In the spelling of its CREATE TABLE statement.
    package let name: String
    package let key: Column
    let keyKind: KeyKind
    /// Without the key and without generated columns, in the table's order.
    package let columns: [Column]
    /// The names of its generated columns.
    let generatedColumns: [String]
    let uniqueKeys: [UniqueKey]
    /// The columns on which it depends whether rows conflict in a unique key; `nil` for all, as generated columns may depend on each.
    let uniqueColumns: [String]?
    /// Whether keys that are not the same bytes may be equal.
    let hasKeyCollation: Bool
    /// The name of the rowid by which a row is found without the index of the keys; `nil` if the key is the rowid, or there is none.
    let rowidName: String?
    let foreignKeys: [ForeignKey]
    /// Its foreign keys of one column.
    var references: [Reference] {
        foreignKeys.filter { $0.columns.count == 1 }.map { Reference(column: $0.columns[0], parent: $0.parent) }
    }
    /// The conflict clause that Weir's own statements need.
    ///
    /// A constraint of the table may replace or ignore rows, which a statement's clause overrides. It overrides those in triggers of the
    /// app as well, so other tables have none.
    let conflictClause: String
}

/// What primary keys hold, and how they are spelled as ids of the contract.
enum KeyKind: Equatable {
    /// As its decimal digits.
    case integer
    /// As it is.
    case text
    /// A uuid in 16 bytes, as lower-case hexadecimal digits with hyphens.
    case uuid
}

/// How SQLite converts values that are stored in a column (https://www.sqlite.org/datatype3.html, section 3.1).
package enum Affinity: Equatable, Sendable {
    case integer
    case text
    case none
    case real
    case numeric

    init(declaredType: String) {
        let type = declaredType.uppercased()
        self =
            if type.contains("INT") {
                .integer
            } else if type.contains("CHAR") || type.contains("CLOB") || type.contains("TEXT") {
                .text
            } else if type.contains("BLOB") || type.isEmpty || type == "ANY" {
                // ANY converts nothing in a STRICT table. In others it is numeric, where this answer is harmless.
                .none
            } else if type.contains("REAL") || type.contains("FLOA") || type.contains("DOUB") {
                .real
            } else {
                .numeric
            }
    }
}

extension Affinity {
    /// A type that has this affinity and permits values of every type, which INTEGER PRIMARY KEY does not.
    var declaredType: String {
        switch self {
        case .integer: "INT"
        case .text: "TEXT"
        case .none: "BLOB"
        case .real: "REAL"
        case .numeric: "NUMERIC"
        }
    }
}

extension TableDefinition {
    /// SQLite's statements return 2000 columns at most by default, and freezing reads two values of each.
    static let mostColumns = 900

    /// Reads a table's definition.
    ///
    /// - Throws: `WeirError.unsupportedTable` if there is no such table, or if it has no usable primary key.
    init(named requested: String, in database: Database) throws {
        func unsupported(_ reason: String) -> WeirError { .unsupportedTable(name: requested, reason: reason) }
        if ["weir_", "sqlite_"].contains(where: { foldedName(requested).hasPrefix($0) }) {
            throw unsupported("its name is reserved; rename it")
        }
        let found = try database.map(
            "SELECT name, type, coalesce(sql, '') FROM sqlite_schema WHERE lower(name) = lower(?1) AND type IN ('table', 'view')",
            [.text(requested)]
        ) { (name: $0.string(at: 0), type: $0.string(at: 1), sql: $0.string(at: 2)) }
        guard let table = found.first else {
            throw unsupported("there is no such table; create it before Weir.open, or name it as it is called now")
        }
        if table.type == "view" { throw unsupported("it is a view; name the tables behind it") }
        if table.sql.uppercased().split(whereSeparator: \.isWhitespace).prefix(2) == ["CREATE", "VIRTUAL"] {
            throw unsupported("it is a virtual table; sync a table that its content comes from")
        }
        name = table.name
        var keys: [(column: Column, type: String)] = []
        var columns: [Column] = []
        var generated: [String] = []
        try database.rows(
            "SELECT name, type, pk, hidden, \"notnull\", dflt_value FROM pragma_table_xinfo(?1) ORDER BY cid",
            [.text(name)]
        ) {
            let column = Column(
                name: $0.string(at: 0), affinity: Affinity(declaredType: $0.string(at: 1)),
                isNotNull: $0.integer(at: 4) == 1,
                defaultValue: $0.isNull(at: 5) ? nil : DefaultValue.expression(of: $0.string(at: 5)))
            if $0.integer(at: 2) > 0 {
                keys.append((column, $0.string(at: 1)))
            } else if $0.integer(at: 3) == 0 {
                columns.append(column)
            } else {
                generated.append(column.name)
            }
        }
        guard let key = keys.first else {
            throw unsupported(
                "it has no PRIMARY KEY, and rowids are reused; declare one of type INTEGER, TEXT or, for uuids, BLOB")
        }
        if keys.count > 1 {
            throw unsupported(
                "its PRIMARY KEY has \(keys.count) columns; give it a key of one column, and these a UNIQUE constraint")
        }
        if columns.count > Self.mostColumns {
            throw unsupported("it has \(columns.count) columns besides its key, and can have \(Self.mostColumns)")
        }
        guard let kind = KeyKind(affinity: key.column.affinity, declaredType: key.type) else {
            throw unsupported(
                "its PRIMARY KEY \(key.column.name) is declared \(key.type); declare it INTEGER, TEXT or, for uuids, BLOB"
            )
        }
        self.key = key.column
        keyKind = kind
        self.columns = columns
        generatedColumns = generated
        let words = table.sql.uppercased().split(whereSeparator: \.isWhitespace)
        conflictClause =
            zip(words, words.dropFirst()).contains { $0.hasSuffix("ON") && $1 == "CONFLICT" } ? " OR ABORT" : ""
        let uniqueKeys = try Self.uniqueKeys(of: name, in: database)
        self.uniqueKeys = uniqueKeys
        let names = (keys.map(\.column) + columns).map(\.name)
        let dependsOnAll = uniqueKeys.contains { generated.contains(where: $0.mayName) }
        uniqueColumns = dependsOnAll ? nil : names.filter { name in uniqueKeys.contains { $0.mayName(name) } }
        // An INTEGER PRIMARY KEY has no index, and that of a table WITHOUT ROWID has the rows themselves.
        let keyIndex = try database.map(
            """
            SELECT x.key AND x.coll <> 'BINARY', x.cid = -1
            FROM pragma_index_list(?1) AS l, pragma_index_xinfo(l.name) AS x WHERE l.origin = 'pk'
            """, [.text(name)]
        ) { (hasCollation: $0.integer(at: 0) == 1, isRowid: $0.integer(at: 1) == 1) }
        hasKeyCollation = keyIndex.contains(where: \.hasCollation)
        let taken = Set((names + generated).map(foldedName))
        rowidName =
            keyIndex.contains(where: \.isRowid) ? ["rowid", "_rowid_", "oid"].first { !taken.contains($0) } : nil
        foreignKeys = try ForeignKey.all(of: name, in: database)
    }

    private static func uniqueKeys(of table: String, in database: Database) throws -> [UniqueKey] {
        let indexes = try database.map(
            """
            SELECT l.name, coalesce(s.sql, '') FROM pragma_index_list(?1) AS l
            LEFT JOIN sqlite_schema AS s ON s.type = 'index' AND s.name = l.name
            WHERE l."unique" AND l.origin <> 'pk' ORDER BY l.seq
            """, [.text(table)]
        ) { (name: $0.string(at: 0), sql: $0.string(at: 1)) }
        return try indexes.compactMap { index in
            let terms = try database.map(
                "SELECT name, coll FROM pragma_index_xinfo(?1) WHERE key ORDER BY seqno", [.text(index.name)]
            ) { (column: $0.isNull(at: 0) ? nil : $0.string(at: 0), collation: $0.string(at: 1)) }
            let columns = terms.compactMap { term in
                term.column.map { UniqueKey.Term(column: $0, collation: term.collation) }
            }
            let statement = IndexStatement(index.sql)
            let expressions = zip(terms, statement.terms).filter { $0.0.column == nil }
            let values = expressions.compactMap { term, text in
                Self.expression(of: text, in: table, database).map {
                    UniqueKey.Value(expression: $0, collation: term.collation)
                }
            }
            let areKnown = columns.count + values.count == terms.count
            if columns.isEmpty && !areKnown { return nil }
            return UniqueKey(terms: columns, values: areKnown ? values : [], condition: statement.condition)
        }
    }

    /// A term's expression, as a trigger can have it; `nil` if it may make statements of the app fail.
    private static func expression(
        of term: IndexStatement.Term, in table: String, _ database: Database
    ) -> IndexExpression? {
        guard term.isHarmless else { return nil }
        for sql in [term.sql, term.sqlWithoutOrder].compactMap(\.self) {
            do {
                _ = try database.value("SELECT 1 FROM \(quoted(table)) WHERE (\(sql)\n) IS NULL LIMIT 0")
                return IndexExpression(sql: sql)
            } catch {
                // No expression, because it has the order.
                continue
            }
        }
        return nil
    }
}

extension KeyKind {
    init?(affinity: Affinity, declaredType: String) {
        switch affinity {
        case .integer: self = .integer
        case .text: self = .text
        case .none where declaredType.uppercased().contains("BLOB"): self = .uuid
        // Declared UUID or GUID, for SQLite a number; uuids as text are kept.
        case .numeric where declaredType.uppercased().contains("UUID") || declaredType.uppercased().contains("GUID"):
            self = .text
        default: return nil
        }
    }

    /// The longest id of the contract, in bytes.
    private static let longestID = 255

    /// A key as an id of the contract, in UTF-8; `nil` if it can be none.
    func id(of key: SQLValue) -> [UInt8]? {
        switch (self, key) {
        case (.integer, .integer(let number)): Array(String(number).utf8)
        case (.text, .text(let bytes)):
            bytes.isEmpty || bytes.count > Self.longestID || bytes.contains(0)
                || String(validating: bytes, as: UTF8.self) == nil ? nil : bytes
        case (.uuid, .blob(let bytes)): UUIDText.spell(bytes)
        default: nil
        }
    }
}

extension KeyKind {
    /// The key that an id of the contract is; `nil` if it can be none.
    func key(ofID id: String) -> SQLValue? {
        let key: SQLValue?
        switch self {
        case .integer: key = Int64(id).map { .integer($0) }
        case .text: return .text(id)
        case .uuid: key = UUIDText.bytes(of: Array(id.utf8)).map { .blob($0) }
        }
        // Ids are compared byte by byte: 007 is another row than 7, and would be sent as that one.
        return key.flatMap { self.id(of: $0) == Array(id.utf8) ? $0 : nil }
    }
}

/// A uuid as text: 32 lower-case hexadecimal digits with hyphens.
enum UUIDText {
    /// How many bytes a uuid has, and how many characters its text.
    static let (byteCount, length) = (16, 36)

    /// - Returns: `nil` unless there are 16 bytes.
    static func spell(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count == byteCount else { return nil }
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            if [4, 6, 8, 10].contains(index) { text.append(UInt8(ascii: "-")) }
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return text
    }

    static func upperCase(_ text: [UInt8]) -> [UInt8] { text.map { (97...102).contains($0) ? $0 - 32 : $0 } }

    static func isLowerCase(_ text: [UInt8]) -> Bool { !text.contains { (65...70).contains($0) } }

    static func lowerCase(_ text: [UInt8]) -> [UInt8] { text.map { (65...70).contains($0) ? $0 + 32 : $0 } }

    /// - Returns: `nil` unless the text is a uuid with hyphens, in either case.
    static func bytes(of text: [UInt8]) -> [UInt8]? {
        guard text.count == length else { return nil }
        var bytes: [UInt8] = []
        var high: UInt8?
        for (index, character) in text.enumerated() {
            if [8, 13, 18, 23].contains(index) {
                guard character == UInt8(ascii: "-") else { return nil }
                continue
            }
            guard let digit = Character(Unicode.Scalar(character)).hexDigitValue else { return nil }
            if let half = high {
                bytes.append(half << 4 | UInt8(digit))
                high = nil
            } else {
                high = UInt8(digit)
            }
        }
        return bytes
    }
}

/// A name as SQLite compares names: ASCII letters in lower case.
func foldedName(_ name: String) -> String {
    String(decoding: name.utf8.map { (65...90).contains($0) ? $0 + 32 : $0 }, as: UTF8.self)
}
