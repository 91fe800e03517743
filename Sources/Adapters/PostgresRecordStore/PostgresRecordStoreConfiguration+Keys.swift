import Configuration
import Postgres

/// The settings of tables in Postgres; the executable scopes them with `postgres.`.
extension PostgresRecordStoreConfiguration: ConfigurationComponent {
    static let shardsKey = ConfigurationKey(
        "shards", .connectionStrings, default: ["dbname=weir"],
        "Databases as connection strings of libpq without passwords; partition p lives in number p mod n, for ever.")
    static let passwordKey = ConfigurationKey(
        optional: "password", .secret(), "Password for all databases; without it libpq's own sources count (.pgpass).")
    static let schemaKey = ConfigurationKey(
        "schema", .postgresName, default: "weir", "Schema of Postgres that holds the tables.")
    static let connectionsKey = ConfigurationKey(
        "connections", .integer(in: 1...64), default: 8, "Sessions with each database that read and write.")
    static let readersRoleKey = ConfigurationKey(
        optional: "readers-role", .postgresName, "Role that is granted to read all tables.")
    static let indexReferencesKey = ConfigurationKey(
        "index-references", .boolean, default: false,
        "Whether columns that refer to other tables get an index each when they are made; every write pays for them.")
    static let migrateAtStartKey = ConfigurationKey(
        "migrate-at-start", .boolean, default: true,
        "Whether ordering makes and extends tables where something is missing, or waits for weir migrate.")
    static let stalledAfterKey = ConfigurationKey(
        "stalled-after", .duration(in: .milliseconds(100)...(.seconds(60))), default: .seconds(3),
        "How long a commit waits for a replaced worker that holds its partition before it ends that one's session.")
    static let idleTransactionTimeoutKey = ConfigurationKey(
        "idle-transaction-timeout", .duration(in: .seconds(1)...(.seconds(300))), default: .seconds(10),
        "Open transactions without a statement end after this; below the session time-out of the log.")
    static let connectTimeoutKey = ConfigurationKey(
        "connect-timeout", .duration(in: .milliseconds(100)...(.seconds(60))), default: .seconds(10),
        "How long it may take to reach a server and log in.")

    /// Every key.
    package static let keys: [any DeclaredConfigurationKey] = [
        shardsKey, passwordKey, schemaKey, connectionsKey, readersRoleKey, indexReferencesKey, migrateAtStartKey,
        stalledAfterKey, idleTransactionTimeoutKey, connectTimeoutKey,
    ]

    /// Reads the settings.
    package init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        let password = try reader.read(Self.passwordKey)
        // The type of the key has read each of them once.
        var shards = try reader.read(Self.shardsKey).compactMap(connectionParameters)
        if let password {
            for index in shards.indices { shards[index]["password"] = password.reveal() }
        }
        self.init(
            shards: shards, schema: try reader.read(Self.schemaKey), connections: try reader.read(Self.connectionsKey),
            readersRole: try reader.read(Self.readersRoleKey),
            indexesReferences: try reader.read(Self.indexReferencesKey),
            migratesAtStart: try reader.read(Self.migrateAtStartKey),
            stalledAfter: try reader.read(Self.stalledAfterKey),
            idleTransactionTimeout: try reader.read(Self.idleTransactionTimeoutKey),
            connectTimeout: try reader.read(Self.connectTimeoutKey))
    }
}

extension ConfigurationType where Value == [String] {
    /// Connection strings that hold no password: settings are shown to whoever asks for them.
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

/// Reads a connection string; `nil` where it is none, and no message may quote it.
private func connectionParameters(_ text: String) -> ConnectionParameters? {
    do throws(ConnectionStringError) {
        return try ConnectionParameters(text)
    } catch {
        return nil
    }
}
