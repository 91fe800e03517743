import Kafka
import LoadTools
import Postgres
import ThreadExecutor

/// Brokers and a database to measure on.
struct Cluster: Sendable {
    /// Bootstrap servers as `host:port,…`, reached without TLS.
    let brokers: String
    /// Copies of each partition, 1 to 100.
    let replication: Int
    /// Whether all roles run in one process.
    let isTogether: Bool
    /// The database as a connection string of libpq without a password, and as libpq understood it.
    let database: String
    let parameters: ConnectionParameters

    /// - Parameter database: a connection string of libpq; a password comes from `~/.pgpass`, since other users can read
    ///   arguments.
    /// - Throws: `LoadFailure`, which quotes nothing of a connection string.
    init(brokers: String, database: String, replication: Int = 1, isTogether: Bool = false)
        throws(LoadFailure)
    {
        let wrong = LoadFailure("--postgres takes a connection string of libpq, postgresql://… or host=… dbname=…")
        do {
            parameters = try ConnectionParameters(database).verifyingServers()
        } catch {
            throw wrong
        }
        guard parameters["password"] == nil else {
            throw LoadFailure(
                "--postgres takes no password, since other users can read arguments: put it into ~/.pgpass")
        }
        guard !brokers.isEmpty else { throw LoadFailure("--kafka takes HOST:PORT,...") }
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
            throw LoadFailure("\(parameters) cannot be used: \(error)")
        }
        defer { connection.close() }
        // As the store's sessions.
        try connection.execute("SET synchronous_commit = off; SET jit = off")
        return try body(connection)
    }
}

extension Cluster {
    /// Runs a body with a client of the brokers, and closes it.
    ///
    /// - Parameter settings: further properties of librdkafka.
    func withClient<Value>(
        _ kind: KafkaClient.Kind, _ settings: [(name: String, value: String)] = [], events: KafkaClient.Events = .none,
        _ body: (KafkaClient) async throws -> Value
    ) async throws -> Value {
        var properties = KafkaProperties()
        properties.set("bootstrap.servers", brokers)
        for (name, value) in settings { properties.set(name, value) }
        let thread = try DedicatedThread(name: "load-kafka")
        let client: KafkaClient
        do {
            client = try KafkaClient(kind, properties, events: events)
        } catch {
            await thread.close()
            throw error
        }
        let result: Result<Value, any Error>
        do {
            result = .success(try await body(client))
        } catch {
            result = .failure(error)
        }
        await client.close(on: thread)
        await thread.close()
        return try result.get()
    }
}
