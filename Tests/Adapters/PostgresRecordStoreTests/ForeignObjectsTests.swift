import PostgresRecordStore
import PostgresServer
import RecordStore
import SyncModel
import Testing

/// Changes of the tables by others are found when they are prepared.
@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct ForeignObjectsTests {
    static let rejected: [(sql: String, text: String)] = [
        ("CREATE UNIQUE INDEX extra ON person (age)", "unique index extra"),
        ("CREATE INDEX extra ON person ((1 / age))", "index extra with an expression"),
        ("CREATE INDEX extra ON person (age) WHERE 1 / age > 0", "index extra with an expression"),
        ("CREATE INDEX extra ON person (note)", "index extra over values that may be too large"),
        ("CREATE INDEX extra ON person (age) INCLUDE (note)", "index extra over values that may be too large"),
        ("CREATE INDEX extra ON person USING brin (note)", "index extra of a kind"),
        ("ALTER TABLE person ADD UNIQUE (name)", "unique constraint person_name_key"),
        ("ALTER TABLE person ADD CONSTRAINT extra CHECK (age > 5)", "check extra"),
        ("ALTER TABLE person ADD CONSTRAINT extra CHECK (age > 5) NOT VALID", "check extra"),
        ("ALTER TABLE person ADD FOREIGN KEY (sync_id) REFERENCES weir_owners", "foreign key person_sync_id_fkey"),
        ("ALTER TABLE person ADD EXCLUDE USING btree (age WITH =)", "exclusion constraint person_age_excl"),
        (
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
                + "CREATE TRIGGER extra BEFORE INSERT ON person FOR EACH ROW EXECUTE FUNCTION f()", "trigger extra"
        ),
        (
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE CONSTRAINT "
                + "TRIGGER extra AFTER UPDATE ON weir_partitions DEFERRABLE FOR EACH ROW EXECUTE FUNCTION f()",
            "constraint trigger extra"
        ),
        ("CREATE RULE extra AS ON UPDATE TO person DO INSTEAD NOTHING", "rule extra"),
        ("ALTER TABLE person ENABLE ROW LEVEL SECURITY", "row-level security"),
        ("ALTER TABLE person ADD COLUMN extra integer NOT NULL DEFAULT 1", "column extra, which Weir did not create"),
        (
            "ALTER TABLE person ADD COLUMN extra integer; ALTER TABLE person ALTER extra SET DEFAULT 1 / 0",
            "column extra, which Weir did not create"
        ),
        (
            "ALTER TABLE person ADD COLUMN extra bigint GENERATED ALWAYS AS (age * 2) STORED",
            "column extra, which Weir did not create"
        ),
        ("ALTER TABLE person ADD COLUMN extra serial", "column extra, which Weir did not create"),
        (
            "CREATE DOMAIN d AS integer NOT NULL; ALTER TABLE person ADD COLUMN extra d",
            "column extra, which Weir did not create"
        ),
        ("CREATE DOMAIN d AS bigint CHECK (VALUE > 0); ALTER TABLE person ALTER age TYPE d", "changed column age"),
        ("ALTER TABLE person ALTER age SET NOT NULL", "changed column age"),
        ("ALTER TABLE person ALTER age TYPE integer", "changed column age"),
        ("ALTER TABLE person ALTER paid TYPE numeric(5,2)", "changed column paid"),
        ("ALTER TABLE person ALTER id TYPE text COLLATE pg_catalog.\"default\"", "changed column id"),
        ("ALTER TABLE person RENAME age TO years", "lacks its column age"),
        ("ALTER TABLE person DROP COLUMN note", "lacks its column note"),
        ("ALTER TABLE person DROP CONSTRAINT person_pkey", "has lost its primary key"),
        (
            "ALTER TABLE person DROP CONSTRAINT person_pkey; ALTER TABLE person ADD PRIMARY KEY (id, sync_id)",
            "changed primary key"
        ),
        ("ALTER TABLE person SET UNLOGGED", "is not logged"),
        ("ALTER TABLE person REPLICA IDENTITY NOTHING", "no replica identity"),
        ("CREATE TABLE more () INHERITS (person)", "inherits from another table"),
        ("ALTER TABLE person RENAME TO people", "is missing"),
        ("DROP TABLE person; CREATE VIEW person AS SELECT 1", "not an ordinary table"),
        ("DROP TABLE weir_owners", "weir_owners is missing"),
        ("ALTER TABLE weir_devices ALTER device DROP IDENTITY", "changed column device"),
        ("CREATE TABLE pet (name text)", "pet already exists, and Weir did not create it"),
        ("CREATE VIEW pet AS SELECT 1", "pet already exists, and Weir did not create it"),
        ("ALTER TABLE person ADD COLUMN born text", "already has a column born, and Weir did not create it"),
        ("DELETE FROM weir_shard", "weir_shard has 0 rows"),
        ("INSERT INTO weir_migrations (format) VALUES (4)", "format 4 of a newer Weir"),
    ]

    /// Prepares tables, changes them with SQL, and prepares them for one more version.
    private func prepareAgain(after sql: String) async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore { try await $0.prepare(Samples.first) }
        try await place.execute(sql)
        try await place.withStore { try await $0.prepare(Samples.second) }
    }

    @Test(arguments: rejected)
    func rejectsWhatCouldRejectARow(sql: String, text: String) async throws {
        let error = await #expect(throws: RecordStoreError.self) { try await prepareAgain(after: sql) }
        #expect(error?.code == .incompatibleTables)
        #expect(error?.message.contains(text) == true, "\(error?.message ?? "")")
    }

    @Test(arguments: [
        "CREATE INDEX extra ON person (sync_id, age)", "CREATE INDEX extra ON person (age, paid, name)",
        "CREATE INDEX extra ON person USING hash (note)", "CREATE TABLE notes (text text UNIQUE)",
        "CREATE VIEW names AS SELECT name FROM person", "ALTER TABLE person ADD COLUMN extra text", "ANALYZE",
        "CREATE TABLE notes (s text, i text, FOREIGN KEY (s, i) REFERENCES person)",
        "COMMENT ON TABLE person IS 'mine'", "ALTER TABLE person SET (autovacuum_enabled = false)",
        "CREATE STATISTICS extra ON age, paid FROM person",
    ])
    func acceptsWhatCannotRejectARow(sql: String) async throws {
        try await prepareAgain(after: sql)
    }

    @Test func aConstraintAddedWhileWeirRunsIsNamedWithTheRejectedRow() async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore { store in
            try await store.prepare(Samples.first)
            try await place.execute("ALTER TABLE person ADD CONSTRAINT grown CHECK (age > 17)")
            let rows = (0..<3000).map { Samples.row("\($0)", [#""x""#, "18", "null", "null", "null", "null"]) }
            let child = Samples.row("child", [#""secret""#, "17", "null", "null", "null", "null"])
            let error = await #expect(throws: RecordStoreError.self) {
                try await store.commit([Samples.step(1, rows + [child] + [Samples.row("after")])])
            }
            #expect(error?.code == .refusedRow(child.key))
            #expect(error?.message.contains("grown") == true)
            #expect(error?.message.contains("secret") == false)
            #expect(try await store.position(of: 0) == nil)
            try await store.commit([Samples.step(1, rows)])
        }
    }

    @Test(arguments: [("23514", false), ("P0001", false), ("22023", false)])
    func aTriggersRefusalNamesTheRow(state: String, isRetriable: Bool) async throws {
        try await withTrigger(raising: state) { store in
            let error = await #expect(throws: RecordStoreError.self) {
                try await store.commit([Samples.step(1, [Samples.row("a"), Samples.row("stop")])])
            }
            #expect(error?.code == .refusedRow(Samples.row("stop").key))
            #expect(error?.isRetriable == isRetriable)
        }
    }

    @Test(arguments: [
        ("53100", RecordStoreError.Code.storageFull, true), ("25006", .readOnly, true), ("40001", .unavailable, true),
        ("40P01", .unavailable, true), ("53200", .unavailable, true), ("57014", .unavailable, true),
        ("58030", .unavailable, true), ("XX001", .corrupt, false),
    ])
    func failuresThatAreNoRowsHaveTheirCode(state: String, code: RecordStoreError.Code, isRetriable: Bool) async throws
    {
        try await withTrigger(raising: state) { store in
            let error = await #expect(throws: RecordStoreError.self) {
                try await store.commit([Samples.step(1, [Samples.row("stop")])])
            }
            #expect(error?.code == code)
            #expect(error?.isRetriable == isRetriable)
            #expect(error?.message.contains(state) == true)
            // The store goes on.
            try await store.commit([Samples.step(1, [Samples.row("a")])])
        }
    }

    /// A store whose table got a trigger after the start, which fails at the row `stop`.
    private func withTrigger(raising state: String, _ body: (PostgresRecordStore) async throws -> Void) async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore { store in
            try await store.prepare(Samples.first)
            try await place.execute(
                """
                CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    IF NEW.id = 'stop' THEN RAISE EXCEPTION 'stopped' USING ERRCODE = '\(state)'; END IF;
                    RETURN NEW;
                END $$;
                CREATE TRIGGER stop BEFORE INSERT ON person FOR EACH ROW EXECUTE FUNCTION stop()
                """)
            try await body(store)
        }
    }
}
