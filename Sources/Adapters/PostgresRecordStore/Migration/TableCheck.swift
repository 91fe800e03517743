import Postgres
import RecordStore
import RelationalTables

/// Compares tables of the database with their definitions, and rejects foreign objects that could reject a row (I4).
struct TableCheck {
    let connection: PostgresConnection
    let schema: String
    let database: String
    /// Whether nothing will be written, so that no row can be rejected.
    let isForReading: Bool

    // MARK: Existing objects

    func schemaExists() throws -> Bool {
        try query("SELECT 1 FROM pg_namespace WHERE nspname = $1::text", schema).count > 0
    }

    /// Whether the schema has a table, view or other relation of this name.
    func exists(_ table: String) throws -> Bool { try kind(of: table) != nil }

    /// Rejects an existing relation with the name of a new table.
    func rejectForeign(_ table: String) throws {
        guard try exists(table) else { return }
        throw refusal(
            table, "already exists, and Weir did not create it; drop or rename it, or set another database or schema")
    }

    func rejectMissingRole(_ role: String) throws {
        guard try query("SELECT 1 FROM pg_roles WHERE rolname = $1::text", role).count == 0 else { return }
        throw RecordStoreError.incompatible(
            "the role \(role) of postgres.readers-role does not exist; create it with CREATE ROLE, or set another",
            database: database)
    }

    func canRead(_ table: String, _ role: String) throws -> Bool {
        let rows = try query(
            "SELECT has_table_privilege($1::text, to_regclass($2::text), 'SELECT')", role, qualified(table))
        return try !rows.isNull(0, 0) && rows.boolean(0, 0)
    }

    private func kind(of table: String) throws -> String? {
        let rows = try query(
            """
            SELECT relkind::text FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
            WHERE nspname = $1::text AND relname = $2::text
            """, schema, table)
        return rows.count > 0 ? try rows.text(0, 0) : nil
    }

    // MARK: The check of one table

    /// - Parameter added: the names of columns that will be added.
    /// - Throws: `RecordStoreError` that says what is wrong and what to do.
    func run(_ definition: TableDefinition, adding added: [String] = []) throws {
        guard let kind = try kind(of: definition.name) else {
            throw refusal(
                definition.name,
                "is missing; restore the database from a backup, or set another one, where the tables are rebuilt")
        }
        guard kind == "r" else { throw refusal(definition.name, "is not an ordinary table; make it one again") }
        if !isForReading { try checkTable(definition) }
        try checkColumns(definition, adding: added)
        guard !isForReading else { return try checkPrivileges(definition, ["SELECT"]) }
        try checkConstraints(definition)
        try checkTriggersAndRules(definition)
        try IndexCheck(connection: connection, schema: schema, database: database).run(definition)
        try checkPublications(definition)
        try checkPrivileges(definition, ["SELECT", "INSERT", "UPDATE"])
    }

    private func checkTable(_ definition: TableDefinition) throws {
        let rows = try query(
            """
            SELECT relpersistence = 'p', relrowsecurity OR relforcerowsecurity, relispartition, relreplident <> 'n',
                EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = pg_class.oid OR inhparent = pg_class.oid)
            FROM pg_class WHERE oid = to_regclass($1::text)
            """, definition.qualifiedName)
        guard rows.count == 1 else { throw refusal(definition.name, "is missing") }
        if try !rows.boolean(0, 0) {
            throw refusal(definition.name, "is not logged and would be empty after a crash; ALTER TABLE … SET LOGGED")
        }
        if try rows.boolean(0, 1) {
            throw refusal(definition.name, "has row-level security, which could reject a row; disable it")
        }
        if try rows.boolean(0, 2) || rows.boolean(0, 4) {
            throw refusal(definition.name, "is a partition or inherits from another table; detach it")
        }
        if try !rows.boolean(0, 3) {
            throw refusal(
                definition.name, "has no replica identity, so that updates fail once it is published; set DEFAULT")
        }
    }

    private func checkColumns(_ definition: TableDefinition, adding added: [String]) throws {
        let rows = try query(
            """
            SELECT attname::text, format_type(atttypid, atttypmod), attnotnull, attidentity::text, attgenerated::text,
                atthasdef, coalesce(collname::text, ''), typtype::text, typnamespace = 'pg_catalog'::regnamespace
            FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
            LEFT JOIN pg_collation ON pg_collation.oid = attcollation
            WHERE attrelid = to_regclass($1::text) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
            """, definition.qualifiedName)
        var missing = Dictionary(uniqueKeysWithValues: definition.columns.map { ($0.name, $0) })
        for row in 0..<rows.count {
            let name = try rows.text(row, 0)
            let type = try rows.text(row, 1)
            let isNullable = try !rows.boolean(row, 2)
            let identity = try rows.text(row, 3)
            let isGenerated = try !rows.text(row, 4).isEmpty
            if let expected = missing.removeValue(forKey: name) {
                let isText = expected.type == "text"
                let isSame =
                    try type == expected.type && isNullable == expected.isNullable && !isGenerated
                    && identity == (expected.isIdentity ? "a" : "") && (!isText || rows.text(row, 6) == "C")
                guard isSame else {
                    throw refusal(
                        definition.name,
                        "has a changed column \(name): Weir created it as \(expected.declaration); change it back")
                }
                continue
            }
            if added.contains(where: { $0.utf8.elementsEqual(name.utf8) }) {
                throw refusal(
                    definition.name, "already has a column \(name), and Weir did not create it; drop or rename it")
            }
            let isPlain =
                try isNullable && identity.isEmpty && !isGenerated && !rows.boolean(row, 5) && rows.text(row, 7) == "b"
                && rows.boolean(row, 8)
            guard isPlain else {
                throw refusal(
                    definition.name,
                    "has the column \(name), which Weir did not create and which could reject a row; drop it, or make it "
                        + "nullable, of a built-in type, without default or expression")
            }
        }
        if let column = definition.columns.first(where: { missing[$0.name] != nil }) {
            throw refusal(definition.name, "lacks its column \(column.name); restore the database from a backup")
        }
    }

    private func checkConstraints(_ definition: TableDefinition) throws {
        let rows = try query(
            """
            SELECT conname::text, contype::text, condeferrable,
                ARRAY (SELECT attname::text FROM unnest(conkey) WITH ORDINALITY AS part (number, place)
                    JOIN pg_attribute ON attrelid = conrelid AND attnum = part.number ORDER BY part.place)::text
            FROM pg_constraint WHERE conrelid = to_regclass($1::text) AND contype <> 'n'
            """, definition.qualifiedName)
        var hasKey = false
        for row in 0..<rows.count {
            let name = try rows.text(row, 0)
            let key = "{\(definition.primaryKey.joined(separator: ","))}"
            if try rows.text(row, 1) == "p", try !rows.boolean(row, 2), try rows.text(row, 3) == key {
                hasKey = true
                continue
            }
            let kinds = [
                "c": "check", "f": "foreign key", "u": "unique constraint", "x": "exclusion constraint",
                "t": "constraint trigger", "p": "changed primary key",
            ]
            let kind = kinds[try rows.text(row, 1)] ?? "constraint"
            throw refusal(definition.name, "has the \(kind) \(name), which could reject a row; drop it")
        }
        guard hasKey else {
            let key = definition.primaryKey.joined(separator: ", ")
            throw refusal(definition.name, "has lost its primary key (\(key)); add it again")
        }
    }

    /// Triggers of other tables' foreign keys check only the primary key, which never changes, so they are allowed.
    private func checkTriggersAndRules(_ definition: TableDefinition) throws {
        let triggers = try query(
            "SELECT tgname::text FROM pg_trigger WHERE tgrelid = to_regclass($1::text) AND NOT tgisinternal",
            definition.qualifiedName)
        if triggers.count > 0 {
            throw refusal(
                definition.name,
                "has the trigger \(try triggers.text(0, 0)), which could reject or change a row; drop it")
        }
        let rules = try query(
            "SELECT rulename::text FROM pg_rewrite WHERE ev_class = to_regclass($1::text)", definition.qualifiedName)
        if rules.count > 0 {
            throw refusal(
                definition.name, "has the rule \(try rules.text(0, 0)), which could reject or change a row; drop it")
        }
    }

    /// A publication of some rows or columns makes updates fail unless it contains the whole key.
    private func checkPublications(_ definition: TableDefinition) throws {
        let rows = try query(
            """
            SELECT pubname::text FROM pg_publication_rel JOIN pg_publication ON pg_publication.oid = prpubid
            WHERE prrelid = to_regclass($1::text) AND (to_jsonb(pg_publication_rel) ->> 'prqual' IS NOT NULL
                OR to_jsonb(pg_publication_rel) ->> 'prattrs' IS NOT NULL)
            """, definition.qualifiedName)
        if rows.count > 0 {
            throw refusal(
                definition.name,
                "is partly published by \(try rows.text(0, 0)), which could reject a row; publish all rows and columns")
        }
    }

    private func checkPrivileges(_ definition: TableDefinition, _ privileges: [String]) throws {
        for privilege in privileges {
            let rows = try query(
                "SELECT has_table_privilege(to_regclass($1::text), $2::text)", definition.qualifiedName, privilege)
            if try !rows.boolean(0, 0) {
                throw refusal(
                    definition.name,
                    "denies Weir's role access: GRANT \(privileges.joined(separator: ", ")) on it")
            }
        }
    }

    private func query(_ sql: String, _ texts: String...) throws(PostgresError) -> PostgresResult {
        var parameters = PostgresParameters()
        for text in texts { parameters.append(text) }
        return try connection.query(sql, parameters)
    }

    private func qualified(_ table: String) -> String { "\(SQLText.name(schema)).\(SQLText.name(table))" }

    private func refusal(_ table: String, _ message: String) -> RecordStoreError {
        .incompatible("table \(schema).\(table) \(message)", database: database)
    }
}
