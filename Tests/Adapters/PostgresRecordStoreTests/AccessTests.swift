import Commands
import Configuration
import Foundation
import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import Testing

/// Authentication: with a password from a file, over a connection with a verified server certificate.
@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct AccessTests {
    /// Creates a certificate authority, a server certificate from it for one name, and an unrelated authority.
    ///
    /// All network connections need TLS and a password.
    private static let setUp = """
        authority() {
            openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$1" -keyout "$1.key" -out "$1.crt" 2> /dev/null
        }
        authority authority && authority other \
        && openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout data/server.key -out server.csr 2> /dev/null \
        && printf 'subjectAltName=DNS:localhost\\n' > names \
        && openssl x509 -req -in server.csr -CA authority.crt -CAkey authority.key -CAcreateserial -days 2 \
        -extfile names -out data/server.crt 2> /dev/null \
        && printf 'local all all trust\\nhostssl all all 127.0.0.1/32 scram-sha-256\\n' > data/pg_hba.conf \
        && chmod 600 data/server.key && chmod 755 . && chmod 644 authority.crt other.crt
        """

    private static let server = Task { try await PostgresServer.startOnNetwork(settings: ["ssl": "on"], setUp: setUp) }

    /// A user with a password that may create a schema.
    private struct Account {
        let place: PostgresStoreHarness
        let name: String
        let password: String

        init() async throws {
            let id = UUID().uuidString.lowercased().filter { $0 != "-" }.prefix(12)
            place = PostgresStoreHarness(
                server: try await AccessTests.server.value, schema: "weir \(id)", database: "postgres")
            name = "app \(id)"
            password = "hunter2 \(UUID().uuidString)"
            try await change("CREATE ROLE \"\(name)\" LOGIN PASSWORD '\(password)'")
            try await change("GRANT CREATE ON DATABASE postgres TO \"\(name)\"")
        }

        func change(_ sql: String) async throws {
            // Two roles that are made at once meet in the same rows of Postgres's own.
            try await place.execute("BEGIN; SELECT pg_advisory_xact_lock(4711); \(sql); COMMIT")
        }

        /// Opens a store with settings as an operator writes them.
        func withStore(
            password: String? = nil, host: String = "localhost", root: String = "authority.crt",
            _ body: (PostgresRecordStore) async throws -> Void
        ) async throws {
            let file = FileManager.default.temporaryDirectory.appending(path: "password-\(UUID().uuidString)")
            try Data("\(password ?? self.password)\n".utf8).write(to: file)
            defer { _ = Result { try FileManager.default.removeItem(at: file) } }
            var schema = ConfigurationSchema(program: "weir")
            schema.add(PostgresRecordStoreConfiguration.self, as: "postgres", "The tables.")
            let sources = ConfigurationSources(environment: [
                "WEIR_POSTGRES_SHARDS": "host=\(host) hostaddr=127.0.0.1 port=\(place.server.port) dbname=postgres "
                    + "user='\(name)' sslmode=verify-full sslrootcert=\(place.server.folder)/\(root)",
                "WEIR_POSTGRES_PASSWORD_FILE": file.path, "WEIR_POSTGRES_SCHEMA": place.schema,
                "WEIR_POSTGRES_CONNECTIONS": "2",
            ])
            let configuration = try schema.load(from: sources) {
                $0.read(PostgresRecordStoreConfiguration.self)
            }.settings
            let store = try await PostgresRecordStore.open(configuration)
            let outcome: Result<Void, any Error>
            do {
                outcome = .success(try await body(store))
            } catch {
                outcome = .failure(error)
            }
            await store.close()
            try outcome.get()
        }
    }

    @Test func authenticatesWithAPasswordFromAFile() async throws {
        let account = try await Account()
        try await account.withStore { store in
            try await store.prepare(Samples.first)
            try await store.commit([Samples.step(1, [Samples.row("a")])])
            let sessions = try await account.place.query(
                "SELECT DISTINCT ssl::text FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) "
                    + "WHERE usename = '\(account.name)'")
            #expect(sessions == [["true"]])
        }
    }

    @Test func aWrongPasswordIsReportedWithoutItAndACorrectedOneNeedsNoRestart() async throws {
        let account = try await Account()
        let wrong = "wrong \(UUID().uuidString)"
        try await account.withStore(password: wrong) { store in
            let error = await #expect(throws: RecordStoreError.self) { try await store.prepare(Samples.first) }
            let message = error?.message ?? ""
            #expect(error?.code == .unavailable)
            #expect(message.contains("password authentication failed for user \"\(account.name)\""), "\(message)")
            #expect(message.contains("postgres.password"), "\(message)")
            #expect(!message.contains(wrong) && !message.contains(account.password))
            try await account.change("ALTER ROLE \"\(account.name)\" PASSWORD '\(wrong)'")
            try await store.prepare(Samples.first)
        }
    }

    @Test(arguments: [
        ("elsewhere", "authority.crt", "does not match host name \"elsewhere\""),
        ("localhost", "other.crt", "certificate verify failed"),
        ("localhost", "missing.crt", "missing.crt\" does not exist"),
    ])
    func anUnverifiedServerIsRejected(host: String, root: String, reason: String) async throws {
        let account = try await Account()
        try await account.withStore(host: host, root: root) { store in
            let error = await #expect(throws: RecordStoreError.self) { try await store.prepare(Samples.first) }
            #expect(error?.code == .unavailable)
            #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
            #expect(error?.message.contains(account.password) == false)
        }
    }
}
