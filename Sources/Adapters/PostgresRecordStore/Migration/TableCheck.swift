import Postgres
import RecordStore

/// Compares tables of the database with how they must look, and looks for what others added that could refuse a row (I4).
struct TableCheck {
    private let connection: PostgresConnection
    private let schema: String
    private let place: String
    private let isForReading: Bool

    /// - Parameter isForReading: whether nothing will be written, so that nothing can be refused.
    init(_ connection: PostgresConnection, schema: String, place: String, isForReading: Bool) {
        self.connection = connection
        self.schema = schema
        self.place = place
        self.isForReading = isForReading
    }

    // MARK: What is there

    /// Whether the schema of Postgres exists.
    func schemaExists() throws -> Bool {
        try query("SELECT 1 FROM pg_namespace WHERE nspname = $1::text", schema).count > 0
    }

    /// Whether the schema has a table, view or the like of this name.
    func exists(_ table: String) throws -> Bool { try kind(of: table) != nil }

    /// Refuses a table that is to be made and is there already.
    func refuseForeign(_ table: String) throws {
        guard try exists(table) else { return }
        throw refusal(
            table, "is there already, and Weir did not make it; drop or rename it, or name another database or schema")
    }

    /// Refuses a role that nobody made.
    func refuseMissingRole(_ role: String) throws {
        guard try query("SELECT 1 FROM pg_roles WHERE rolname = $1::text", role).count == 0 else { return }
        throw RecordStoreError(
            .incompatibleTables,
            message: "\(place): there is no role \(role) to grant reading to; make it with CREATE ROLE, or name another"
        )
    }

    /// Whether a role may read a table.
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

    /// - Parameter added: the names of columns that are to be added.
    /// - Throws: `RecordStoreError` that says what is wrong and what to do.
    func run(_ shape: TableShape, adding added: [String] = []) throws {
        guard let kind = try kind(of: shape.name) else {
            throw refusal(
                shape.name,
                "is missing; restore the database from a copy, or name another one and let the tables be made again")
        }
        guard kind == "r" else { throw refusal(shape.name, "is no ordinary table any more; make it one again") }
        if !isForReading { try checkTable(shape) }
        try checkColumns(shape, adding: added)
        guard !isForReading else { return try checkPrivileges(shape, ["SELECT"]) }
        try checkConstraints(shape)
        try checkTriggersAndRules(shape)
        try IndexCheck(connection, schema: schema, place: place).run(shape)
        try checkPublications(shape)
        try checkPrivileges(shape, ["SELECT", "INSERT", "UPDATE"])
    }

    private func checkTable(_ shape: TableShape) throws {
        let rows = try query(
            """
            SELECT relpersistence = 'p', relrowsecurity OR relforcerowsecurity, relispartition, relreplident <> 'n',
                EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = pg_class.oid OR inhparent = pg_class.oid)
            FROM pg_class WHERE oid = to_regclass($1::text)
            """, shape.qualifiedName)
        guard rows.count == 1 else { throw refusal(shape.name, "is missing") }
        if try !rows.boolean(0, 0) {
            throw refusal(shape.name, "is not logged and would be empty after a crash; ALTER TABLE … SET LOGGED")
        }
        if try rows.boolean(0, 1) {
            throw refusal(shape.name, "has row level security, which could refuse a row; disable it")
        }
        if try rows.boolean(0, 2) || rows.boolean(0, 4) {
            throw refusal(shape.name, "is part of other tables (partitions, inheritance); detach it")
        }
        if try !rows.boolean(0, 3) {
            throw refusal(shape.name, "has no replica identity, so that updates fail when it is published; set DEFAULT")
        }
    }

    private func checkColumns(_ shape: TableShape, adding added: [String]) throws {
        let rows = try query(
            """
            SELECT attname::text, format_type(atttypid, atttypmod), attnotnull, attidentity::text, attgenerated::text,
                atthasdef, coalesce(collname::text, ''), typtype::text, typnamespace = 'pg_catalog'::regnamespace
            FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
            LEFT JOIN pg_collation ON pg_collation.oid = attcollation
            WHERE attrelid = to_regclass($1::text) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
            """, shape.qualifiedName)
        var missing = Dictionary(uniqueKeysWithValues: shape.columns.map { ($0.name, $0) })
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
                        shape.name,
                        "has the column \(name) not as Weir made it: it was \(expected.declaration); change it back")
                }
                continue
            }
            if added.contains(where: { $0.utf8.elementsEqual(name.utf8) }) {
                throw refusal(
                    shape.name, "has a column \(name) already, and Weir did not make it; drop or rename it")
            }
            let isPlain =
                try isNullable && identity.isEmpty && !isGenerated && !rows.boolean(row, 5) && rows.text(row, 7) == "b"
                && rows.boolean(row, 8)
            guard isPlain else {
                throw refusal(
                    shape.name,
                    "has the column \(name), which Weir did not make and which could refuse a row; drop it, or make it "
                        + "nullable, of a type of Postgres's own, without default or expression")
            }
        }
        if let column = shape.columns.first(where: { missing[$0.name] != nil }) {
            throw refusal(shape.name, "lacks its column \(column.name); restore the database from a copy")
        }
    }

    private func checkConstraints(_ shape: TableShape) throws {
        let rows = try query(
            """
            SELECT conname::text, contype::text, condeferrable,
                ARRAY (SELECT attname::text FROM unnest(conkey) WITH ORDINALITY AS part (number, place)
                    JOIN pg_attribute ON attrelid = conrelid AND attnum = part.number ORDER BY part.place)::text
            FROM pg_constraint WHERE conrelid = to_regclass($1::text) AND contype <> 'n'
            """, shape.qualifiedName)
        var hasKey = false
        for row in 0..<rows.count {
            let name = try rows.text(row, 0)
            let key = "{\(shape.primaryKey.joined(separator: ","))}"
            if try rows.text(row, 1) == "p", try !rows.boolean(row, 2), try rows.text(row, 3) == key {
                hasKey = true
                continue
            }
            let kinds = [
                "c": "check", "f": "foreign key", "u": "unique constraint", "x": "exclusion constraint",
                "t": "constraint trigger", "p": "changed primary key",
            ]
            let kind = kinds[try rows.text(row, 1)] ?? "constraint"
            throw refusal(shape.name, "has the \(kind) \(name), which could refuse a row; drop it")
        }
        guard hasKey else {
            let key = shape.primaryKey.joined(separator: ", ")
            throw refusal(shape.name, "has lost its primary key (\(key)); add it again")
        }
    }

    /// Triggers of foreign keys in other tables that point here look at keys alone, which never change.
    private func checkTriggersAndRules(_ shape: TableShape) throws {
        let triggers = try query(
            "SELECT tgname::text FROM pg_trigger WHERE tgrelid = to_regclass($1::text) AND NOT tgisinternal",
            shape.qualifiedName)
        if triggers.count > 0 {
            throw refusal(
                shape.name, "has the trigger \(try triggers.text(0, 0)), which could refuse or change a row; drop it")
        }
        let rules = try query(
            "SELECT rulename::text FROM pg_rewrite WHERE ev_class = to_regclass($1::text)", shape.qualifiedName)
        if rules.count > 0 {
            throw refusal(
                shape.name, "has the rule \(try rules.text(0, 0)), which could refuse or change a row; drop it")
        }
    }

    /// A publication of some rows or columns makes updates fail unless it names the whole key.
    private func checkPublications(_ shape: TableShape) throws {
        let rows = try query(
            """
            SELECT pubname::text FROM pg_publication_rel JOIN pg_publication ON pg_publication.oid = prpubid
            WHERE prrelid = to_regclass($1::text) AND (to_jsonb(pg_publication_rel) ->> 'prqual' IS NOT NULL
                OR to_jsonb(pg_publication_rel) ->> 'prattrs' IS NOT NULL)
            """, shape.qualifiedName)
        if rows.count > 0 {
            throw refusal(
                shape.name,
                "is published by \(try rows.text(0, 0)) in part, which could refuse a row; publish it whole")
        }
    }

    private func checkPrivileges(_ shape: TableShape, _ privileges: [String]) throws {
        for privilege in privileges {
            let rows = try query(
                "SELECT has_table_privilege(to_regclass($1::text), $2::text)", shape.qualifiedName, privilege)
            if try !rows.boolean(0, 0) {
                throw refusal(
                    shape.name,
                    "may not be used: GRANT \(privileges.joined(separator: ", ")) on it to Weir's role")
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
        RecordStoreError(.incompatibleTables, message: "\(place): table \(schema).\(table) \(message)")
    }
}
