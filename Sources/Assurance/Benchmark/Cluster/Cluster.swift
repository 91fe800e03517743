import Postgres

/// Brokers and a database to measure on, which others may use, too.
package struct Cluster: Sendable {
    /// Brokers to begin with, each as `host:port`, reached without TLS.
    let brokers: String
    /// How many copies of each partition the topics have.
    let replication: Int
    /// Whether all roles are one process, and not one each.
    let isTogether: Bool
    /// The database as a connection string of libpq without a password, and as libpq understood it.
    let database: String
    let parameters: ConnectionParameters

    /// Names brokers and a database.
    ///
    /// - Parameters:
    ///   - brokers: `host:port,…`.
    ///   - database: a connection string of libpq; a password is taken from `~/.pgpass` alone, since arguments can be seen.
    ///   - replication: copies of each partition, 1 to 100.
    ///   - isTogether: whether all roles are one process, and not one each.
    /// - Throws: `BenchmarkFailure`, which quotes nothing of a connection string.
    package init(brokers: String, database: String, replication: Int = 1, isTogether: Bool = false)
        throws(BenchmarkFailure)
    {
        let wrong = BenchmarkFailure("--postgres takes a connection string of libpq, postgresql://… or host=… dbname=…")
        do {
            parameters = try ConnectionParameters(database).verifyingServers()
        } catch {
            throw wrong
        }
        guard parameters["password"] == nil else {
            throw BenchmarkFailure("--postgres takes no password, since arguments can be seen: put it into ~/.pgpass")
        }
        guard !brokers.isEmpty else { throw BenchmarkFailure("--kafka takes HOST:PORT,...") }
        self.brokers = brokers
        self.database = database
        self.replication = replication
        self.isTogether = isTogether
    }

    /// Runs a body with a session, on the thread of the caller.
    func session<Value>(_ body: (PostgresConnection) throws -> Value) throws -> Value {
        let connection: PostgresConnection
        do {
            connection = try PostgresConnection(parameters, timeout: .seconds(10))
        } catch {
            throw BenchmarkFailure("\(parameters) cannot be used: \(error)")
        }
        defer { connection.close() }
        // What the store's sessions are set to, as far as it counts here; the rows can be written again.
        try connection.execute("SET synchronous_commit = off; SET jit = off")
        return try body(connection)
    }
}
