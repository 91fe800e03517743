import Foundation
import ServerShell
import Synchronization
import ThreadExecutor

/// A Kafka cluster of one or several brokers, in a temporary folder and on free ports of 127.0.0.1.
///
/// A shell ends the brokers and removes the folder when its input ends, which happens however this process ends. Topics are not created automatically.
package final class KafkaServer: Sendable {
    /// The Kafka installation that `KAFKA_HOME` names; `nil` skips tests.
    package static let home: String? = {
        guard let home = ProcessInfo.processInfo.environment["KAFKA_HOME"], !home.isEmpty else { return nil }
        return home
    }()

    /// The brokers that `KAFKA_BOOTSTRAP_SERVERS` names, which others run; `nil` where it names none.
    package static let named: String? = {
        guard let servers = ProcessInfo.processInfo.environment["KAFKA_BOOTSTRAP_SERVERS"], !servers.isEmpty else {
            return nil
        }
        return servers
    }()

    /// Why tests that start, pause or kill brokers are skipped.
    package static let skipReason = "KAFKA_HOME does not name a Kafka installation"

    /// The broker that tests share, each with its own topics.
    package static func shared() async throws -> KafkaServer { try await sharedStart.value }

    private static let sharedStart = Task { try await KafkaServer.start() }

    /// `bootstrap.servers`: HOST:PORT, separated by commas.
    package let servers: String
    /// The number of brokers, which are numbered from 1.
    package let brokers: Int
    /// Has the output of broker N in `log-N`.
    package let folder: String
    private let thread: DedicatedThread
    private let shell: Mutex<ServerShell>

    /// A further port of a broker, for clients that reach it through a proxy.
    package struct ProxiedListener: Sendable {
        let port: Int
        let proxyPort: Int

        /// - Parameters:
        ///   - port: where the broker listens.
        ///   - proxyPort: the proxy's port on 127.0.0.1, which the broker names to these clients as its address.
        package init(port: Int, proxyPort: Int) {
            self.port = port
            self.proxyPort = proxyPort
        }
    }

    /// Creates a cluster and starts its brokers.
    ///
    /// - Parameters:
    ///   - brokers: the number of brokers; Kafka's internal topics have as many replicas, up to 3.
    ///   - settings: further settings of each broker.
    ///   - proxied: further listeners of a single broker.
    package static func start(
        brokers: Int = 1, settings: [String: String] = [:], proxied: [ProxiedListener] = []
    ) async throws -> KafkaServer {
        precondition(brokers == 1 || proxied.isEmpty, "a port belongs to one broker")
        guard let home else { throw ServerFailure(reason: skipReason) }
        let thread = try DedicatedThread(name: "kafka-server")
        return try await thread.run {
            let ports = try (0..<brokers).map { _ in try BrokerSettings.Ports.find() }
            let servers = ports.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
            let folder = FileManager.default.temporaryDirectory.appending(path: "weir-kafka-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            for number in 1...brokers {
                let text = BrokerSettings.text(
                    of: number, at: ports, data: folder.path, proxied: proxied, settings)
                try Data(text.utf8).write(to: folder.appending(path: "broker-\(number).properties"))
            }
            let shell = try ServerShell(
                BrokerScript.text, [folder.path, home, BrokerSettings.newClusterID(), "\(brokers)"],
                environment: BrokerSettings.environment(folder: folder.path))
            return KafkaServer(
                servers: servers, brokers: brokers, folder: folder.path, thread: thread, shell: shell)
        }
    }

    private init(
        servers: String, brokers: Int, folder: String, thread: DedicatedThread, shell: consuming sending ServerShell
    ) {
        self.servers = servers
        self.folder = folder
        self.brokers = brokers
        self.thread = thread
        self.shell = Mutex(shell)
    }

    /// Stops a broker in an orderly way.
    package func stop(_ broker: Int = 1) async throws { try await command("stop \(broker)") }

    /// Kills a broker.
    package func kill(_ broker: Int = 1) async throws { try await command("kill \(broker)") }

    /// Restarts a broker with its data, and waits until it is up.
    package func startAgain(_ broker: Int = 1) async throws { try await command("start \(broker)") }

    /// Kills the brokers and starts an empty cluster at their addresses.
    package func replace() async throws { try await command("replace \(BrokerSettings.newClusterID())") }

    /// Stops a broker's process until ``resume(_:)``.
    package func pause(_ broker: Int = 1) async throws { try await command("pause \(broker)") }

    package func resume(_ broker: Int = 1) async throws { try await command("resume \(broker)") }

    /// Kills the brokers and removes their folder.
    package func end() async {
        await thread.run { shell.withLock { $0.end() } }
        await thread.close()
    }

    private func command(_ command: String) async throws {
        try await thread.run { try shell.withLock { try $0.run(command) } }
    }
}
