import Foundation
import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import SyncModel
import Testing

@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct MigrationTests {
    @Test func aDryRunChangesNothing() async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore { store in
            let plans = try await store.migrationPlans(Samples.first)
            #expect(plans.count == 1)
            #expect(plans[0].script.contains("CREATE TABLE \"\(place.schema)\".\"person\""))
            #expect(try await store.migrationPlans(Samples.first) == plans)
            #expect(
                try await place.query("SELECT nspname::text FROM pg_namespace WHERE nspname = '\(place.schema)'") == [])
        }
    }

    @Test func theScriptOfADryRunCreatesTheSameTables() async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore { store in
            for schemas in [Samples.first, Samples.second] {
                let plan = try await store.migrationPlans(schemas)[0]
                #expect(!plan.statements.isEmpty)
                try await place.execute(plan.script)
                #expect(try await store.migrationPlans(schemas).map(\.statements) == [[]])
                #expect(try await store.migrate(schemas).map(\.statements) == [[]])
            }
            try await store.prepare(Samples.second)
            try await store.commit([Samples.step(1, [Samples.row("a")])])
        }
    }

    @Test func aLaterVersionOnlyAdds() async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore { store in
            try await store.prepare(Samples.first)
            try await store.commit([Samples.step(1, [Samples.row("a")])])
            let added = try await store.migrate(Samples.second)[0].statements
            var verbs: [Substring] = []
            for statement in added where !statement.hasPrefix("COMMENT") {
                verbs.append(statement.prefix { $0 != "\"" })
            }
            #expect(verbs == ["ALTER TABLE ", "ALTER TABLE ", "CREATE TABLE ", "INSERT INTO "])
            try await store.prepare(Samples.second)
            let found = try await store.rows([Samples.row("a").key], in: 0, schemaOrdinal: 2)
            #expect(
                found.map(\.values) == [Samples.row("a").values.lifted(to: Samples.second.entries[1].schema.tables[0])])
        }
    }

    @Test func aRejectedVersionChangesNothing() async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore { store in
            try await store.prepare(Samples.first)
            let renamed = Schema(tables: [Table(name: "people", columns: Samples.person.columns)])
            let refused = Samples.history(Samples.first.entries[0].schema, renamed)
            for attempt in [
                store.prepare, { _ = try await store.migrate($0) }, { _ = try await store.migrationPlans($0) },
            ]
                as [@Sendable (SchemaHistory) async throws -> Void]
            {
                let error = await #expect(throws: RecordStoreError.self) { try await attempt(refused) }
                #expect(error?.code == .incompatibleTables)
            }
            #expect(try await store.migrationPlans(Samples.first).map(\.statements) == [[]])
        }
    }

    @Test func aStartWithoutMigrationNamesTheCommand() async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore { configuration in
            configuration.migratesAtStart = false
        } _: { store in
            let error = await #expect(throws: RecordStoreError.self) { try await store.prepare(Samples.first) }
            #expect(error?.code == .incompatibleTables)
            #expect(error?.message.contains("weir migrate") == true)
            try await store.migrate(Samples.first)
            try await store.prepare(Samples.first)
            try await store.commit([Samples.step(1, [Samples.row("a")])])
        }
    }

    @Test func workersThatStartTogetherCreateTheTablesOnce() async throws {
        let place = try await PostgresStoreHarness.make()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<6 { group.addTask { try await place.withStore { try await $0.prepare(Samples.second) } } }
            try await group.waitForAll()
        }
        #expect(try await place.query("SELECT count(*)::text FROM weir_schemas") == [["2"]])
    }

    @Test func aDatabaseWithAnotherEncodingIsRejected() async throws {
        let server = try await PostgresServer.shared()
        let name = "latin_\(UUID().uuidString.lowercased().prefix(8))"
        try await PostgresStoreHarness.make().execute(
            "CREATE DATABASE \(name) ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
        let place = PostgresStoreHarness(server: server, schema: "weir", database: name)
        try await place.withStore { store in
            let error = await #expect(throws: RecordStoreError.self) { try await store.prepare(Samples.first) }
            #expect(error?.code == .incompatibleTables)
            #expect(error?.message.contains("LATIN1") == true)
        }
    }

    // MARK: For operators

    @Test func theReadersRoleMayOnlyRead() async throws {
        let place = try await PostgresStoreHarness.make()
        let role = "reader_\(UUID().uuidString.lowercased().prefix(8))"
        let missing = await #expect(throws: RecordStoreError.self) {
            try await place.withStore {
                $0.readersRole = role
            } _: {
                try await $0.prepare(Samples.first)
            }
        }
        #expect(missing?.message.contains("CREATE ROLE") == true)
        // One table that was made before the role was named, and one after.
        try await place.withStore { try await $0.prepare(Samples.first) }
        try await place.execute("CREATE ROLE \(role)")
        try await place.withStore {
            $0.readersRole = role
        } _: { store in
            try await store.prepare(Samples.first)
            try await store.commit([Samples.step(1, [Samples.row("a")])])
            try await store.prepare(Samples.second)
            #expect(try await store.migrationPlans(Samples.second).map(\.statements) == [[]])
        }
        #expect(try await place.query("SET ROLE \(role)", then: "SELECT name FROM person") == [["name"]])
        #expect(try await place.query("SET ROLE \(role)", then: "SELECT name FROM pet") == [])
        let refused = await #expect(throws: PostgresError.self) {
            try await place.query("SET ROLE \(role)", then: "DELETE FROM person")
        }
        #expect(refused?.sqlState == .insufficientPrivilege)
    }

    @Test func aWorkerNeedsOnlySelectInsertAndUpdate() async throws {
        let place = try await PostgresStoreHarness.make()
        let role = "worker_\(UUID().uuidString.lowercased().prefix(8))"
        try await place.withStore { try await $0.prepare(Samples.first) }
        let all = "ALL TABLES IN SCHEMA \"\(place.schema)\" TO \(role)"
        try await place.execute(
            "CREATE ROLE \(role) LOGIN; GRANT USAGE ON SCHEMA \"\(place.schema)\" TO \(role); GRANT SELECT, INSERT ON \(all)"
        )
        func work() async throws {
            try await place.withStore { configuration in
                configuration.shards[0]["user"] = role
                configuration.migratesAtStart = false
            } _: { store in
                try await store.prepare(Samples.first)
                for number in 1...2 as ClosedRange<Int64> {
                    try await store.commit([Samples.step(number, [Samples.row("a")], [Samples.outcome(number)])])
                }
            }
        }
        let error = await #expect(throws: RecordStoreError.self) { try await work() }
        #expect(error?.message.contains("GRANT SELECT, INSERT, UPDATE") == true)
        try await place.execute("GRANT UPDATE ON \(all)")
        try await work()
        #expect(try await place.query("SELECT highest_batch::text FROM weir_devices") == [["2"]])
    }

    /// They do not have what owners have.
    @Test(arguments: 1...2) func rejectsTablesOfAnEarlierFormat(format: Int) async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore { try await $0.prepare(Samples.first) }
        try await place.execute("UPDATE weir_migrations SET format = \(format)")
        try await place.withStore { store in
            let error = await #expect(throws: RecordStoreError.self) { try await store.prepare(Samples.first) }
            #expect(error?.code == .incompatibleTables)
            #expect(error?.message.contains("format \(format) of an earlier Weir") == true, "\(error?.message ?? "")")
        }
    }

    @Test func valuesHaveTypesThatCanBeQueried() async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore { store in
            try await store.prepare(Samples.second)
            let json = [
                #""a\n\"b\"""#, "7", "null", #""12.50""#, #"{"b":[1.0],"a":"x"}"#, #""b""#, "6", #""2024-02-29""#,
            ]
            let friend = [#""b""#, "1", "null", "null", "null", "null", "6", "null"]
            try await store.commit([Samples.step(1, [Samples.row("a", json), Samples.row("b", friend)])])
        }
        let found = try await place.query(
            """
            SELECT (p.age + 1)::text, (p.paid * 2)::text, p.data ->> 'a', p.data::text, (p.born + 1)::text, f.name,
                to_char(p.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'), p.deleted::text
            FROM person p JOIN person f ON f.sync_id = p.sync_id AND f.id = p.friend
            """)
        #expect(
            found == [
                ["8", "25.00", "x", #"{"b":[1.0],"a":"x"}"#, "2024-03-01", "b", "2023-11-14 22:13:20.123456", "false"]
            ])
        let comments = try await place.query(
            """
            SELECT obj_description('person'::regclass), col_description('person'::regclass, 1),
                col_description('person'::regclass, attnum)
            FROM pg_attribute WHERE attrelid = 'person'::regclass AND attname = 'friend'
            """)
        #expect(comments[0][0]?.contains("person") == true)
        #expect(comments[0][1]?.contains("Owner") == true)
        #expect(comments[0][2] == "Id of a row of person")
    }

    @Test func referencesGetAnIndexIfConfigured() async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore {
            $0.indexesReferences = true
        } _: { store in
            try await store.prepare(Samples.first)
            try await store.prepare(Samples.second)
            // However long a value is.
            let long = "\"" + String(repeating: "x", count: 100_000) + "\""
            let row = Samples.row("a", [#""a""#, "1", "null", "null", "null", long])
            try await store.commit([Samples.step(1, [row])])
        }
        let indexes = try await place.query(
            "SELECT amname::text FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = c.relam "
                + "WHERE indrelid = 'person'::regclass AND NOT indisprimary")
        #expect(indexes == [["hash"]])
    }
}
