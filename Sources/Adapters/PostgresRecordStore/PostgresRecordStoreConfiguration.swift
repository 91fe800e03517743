import Configuration
import Postgres

/// The settings of the tables in Postgres; the executable scopes them with `postgres.`.
package struct PostgresRecordStoreConfiguration: ConfigurationComponent {
    private var connectionStrings = ["dbname=weir"]
    private var password: Secret?
    /// The databases; partition p lives in number p mod n.
    ///
    /// Their order and number are permanent: each database records its number and refuses another.
    package var shards: [ConnectionParameters] = []
    /// Created where it is missing.
    package var schema = "weir"
    /// Each has a thread of its own; one more session reads snapshots.
    package var connections = 8
    /// Three for each table in use, and some more.
    package var maximumStatements = 600
    /// `nil`: only the owner may read them.
    package var readersRole: String?
    package var indexesReferences = false
    /// Whether ``PostgresRecordStore/prepare(_:epoch:)`` makes and extends tables, or refuses where something is missing.
    package var migratesAtStart = true
    package var migrationWait: Duration = .seconds(120)
    package var stalledAfter: Duration = .seconds(3)
    package var idleTransactionTimeout: Duration = .seconds(5)
    package var connectTimeout: Duration = .seconds(10)
    /// Whether the store is only read, which needs no other right than to read the tables: what would write fails.
    ///
    /// ``PostgresRecordStore/prepare(_:epoch:)`` then looks only for what reading needs. For commands, no key sets it.
    package var isReadOnly = false

    package init() {}

    package init(shards: [ConnectionParameters]) {
        precondition(!shards.isEmpty, "there is at least one database")
        self.shards = shards
    }

    /// The qualified name of the device registry's table, which a migration makes.
    package var devicePositionsTable: String { SystemTables(schema: schema).devicePositions.qualifiedName }
    package var ownerFileTables: OwnerFileTables {
        let tables = SystemTables(schema: schema)
        return OwnerFileTables(
            files: tables.ownerFiles.qualifiedName, uploads: tables.fileUploads.qualifiedName,
            chunks: tables.fileChunks.qualifiedName, usage: tables.fileUsage.qualifiedName)
    }
    package var deviceRegistryTable: String { SystemTables(schema: schema).deviceRegistry.qualifiedName }

    /// The connection parameters of a session that writes to a database.
    package func sessionParameters(_ number: Int) -> ConnectionParameters {
        SessionSettings.completed(shards[number], writes: true)
    }

    package static var settings: [Setting<Self>] {
        Setting(
            "shards", \.connectionStrings, .connectionStrings,
            "Databases as connection strings of libpq without passwords; partition p is in number p mod n, permanently."
        )
        Setting(
            optional: "password", \.password, .secret(),
            "Password for all databases; without it libpq uses its own sources (.pgpass).")
        Setting("schema", \.schema, .postgresName, "Schema of Postgres that holds the tables.")
        Setting(
            "connections", \.connections, .integer(in: 1...64), "Sessions with each database that read and write.")
        Setting(
            "max-statements", \.maximumStatements, .integer(in: 50...10_000),
            "Prepared statements that each of these sessions keeps, about 80 kB of the server's memory each; a table in use has three."
        )
        Setting(optional: "readers-role", \.readersRole, .postgresName, "Role that is granted to read all tables.")
        Setting(
            "index-references", \.indexesReferences, .boolean,
            "Whether columns that refer to other tables get an index when they are created; every write maintains it."
        )
        Setting(
            "migrate-at-start", \.migratesAtStart, .boolean,
            "Whether ordering creates and extends tables where something is missing, or waits for weir migrate.")
        Setting(
            "migration-wait", \.migrationWait, .duration(in: .seconds(1)...(.seconds(86_400))),
            "How long a migration waits for tables that other sessions use; it asks rebuilds and weir verify to give way."
        )
        Setting(
            "stalled-after", \.stalledAfter, .duration(in: .milliseconds(100)...(.seconds(60))),
            "How long a commit waits for a replaced worker that locks its partition before it ends that worker's session."
        )
        Setting(
            "idle-transaction-timeout", \.idleTransactionTimeout, .duration(in: .seconds(1)...(.seconds(300))),
            "Open transactions without a statement end after this; must be below kafka.session-timeout.")
        Setting(
            "connect-timeout", \.connectTimeout, .duration(in: .milliseconds(100)...(.seconds(60))),
            "How long it may take to reach a server and log in.")
    }

    package mutating func validate(_ context: ValidationContext<Self>) throws(ConfigurationProblem) {
        // The type of the key has parsed each of them once.
        shards = connectionStrings.compactMap(connectionParameters)
        guard let password else { return }
        for index in shards.indices { shards[index]["password"] = password.reveal() }
    }
}

extension ConfigurationType where Value == [String] {
    /// Connection strings that hold no password: `weir config` shows them.
    fileprivate static var connectionStrings: ConfigurationType {
        let list = ConfigurationType.list(counts: 1...64)
        return ConfigurationType(
            placeholder: list.placeholder,
            expected: "a list of 1 to 64 connection strings of libpq (postgresql://user@host:port/database, or host=… "
                + "dbname=…), separated by commas, without passwords: those belong in the key password",
            hidesRefused: true,
            parse: { text in
                guard let texts = list.parse(text) else { return nil }
                let areFit = texts.allSatisfy { text in
                    connectionParameters(text).map { $0["password"] == nil } ?? false
                }
                return areFit ? texts : nil
            },
            render: list.render)
    }
}

extension ConfigurationType where Value == String {
    /// A name of Postgres's objects.
    fileprivate static var postgresName: ConfigurationType {
        let text = ConfigurationType.string(lengths: 1...63)
        return ConfigurationType(
            placeholder: "NAME", expected: "a name of 1 to 63 bytes that does not start with pg_",
            parse: { value in text.parse(value).flatMap { $0.hasPrefix("pg_") ? nil : $0 } }, render: text.render)
    }
}

/// Parses a connection string; `nil` where it is none, since no message may quote it.
private func connectionParameters(_ text: String) -> ConnectionParameters? {
    do throws(ConnectionStringError) {
        return try ConnectionParameters(text)
    } catch {
        return nil
    }
}

/// The qualified names of the tables of owners' files.
package struct OwnerFileTables: Sendable {
    package let files: String
    package let uploads: String
    package let chunks: String
    package let usage: String
}
