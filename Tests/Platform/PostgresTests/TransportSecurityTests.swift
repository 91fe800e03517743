import Foundation
import Postgres
import PostgresServer
import Testing

@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct TransportSecurityTests {
    /// A certificate for localhost, and another one that did not sign it.
    private static let certificates = """
        openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
        -keyout data/server.key -out data/server.crt 2> /dev/null && cp data/server.crt root.crt \
        && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout other.key -out other.crt \
        2> /dev/null && chmod 600 data/server.key && chmod 755 . && chmod 644 root.crt other.crt
        """

    @Test func theServersCertificateIsVerified() async throws {
        let server = try await PostgresServer.startOnNetwork(settings: ["ssl": "on"], setUp: Self.certificates)
        func connect(_ text: String) async throws -> String {
            let parameters = try ConnectionParameters("port=\(server.port) user=weir dbname=postgres \(text)")
            let pool = try await PostgresPool.start(parameters, count: 1)
            let outcome: Result<String, any Error>
            do {
                outcome = .success(
                    try await pool.perform { connection in
                        try connection.query(
                            "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl"
                        ).text(0, 0)
                    })
            } catch {
                outcome = .failure(error)
            }
            await pool.close()
            return try outcome.get()
        }
        let root = "sslrootcert=\(server.folder)/root.crt"
        #expect(try await connect("host=localhost hostaddr=127.0.0.1 sslmode=verify-full \(root)").hasPrefix("TLS"))
        for wrong in [
            // Another name than the certificate's, another signer, no signer.
            "host=elsewhere hostaddr=127.0.0.1 sslmode=verify-full \(root)",
            "host=localhost hostaddr=127.0.0.1 sslmode=verify-full sslrootcert=\(server.folder)/other.crt",
            "host=localhost hostaddr=127.0.0.1 sslmode=verify-full sslrootcert=\(server.folder)/none.crt",
        ] {
            let error = await #expect(throws: PostgresError.self) { try await connect(wrong) }
            #expect(error?.message.contains("certificate") == true, "\(error?.message ?? "")")
        }
        await server.end()
    }
}
