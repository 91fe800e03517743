import Foundation
import ServerShell
import Synchronization
import ThreadExecutor

/// A Kafka cluster of the tests' own, in a temporary folder and on free ports of 127.0.0.1: one broker, or several.
///
/// A shell started with it ends the brokers and removes the folder when its input ends, which it does however the process of
/// the tests ends. Topics are not made by themselves.
package final class KafkaServer: Sendable {
    /// The installation of Kafka that `KAFKA_HOME` names; `nil` where it names none, and then tests are skipped.
    package static let home: String? = {
        guard let home = ProcessInfo.processInfo.environment["KAFKA_HOME"], !home.isEmpty else { return nil }
        return home
    }()

    /// The brokers that `KAFKA_BOOTSTRAP_SERVERS` names, which run outside the tests; `nil` where it names none.
    package static let named: String? = {
        guard let servers = ProcessInfo.processInfo.environment["KAFKA_BOOTSTRAP_SERVERS"], !servers.isEmpty else {
            return nil
        }
        return servers
    }()

    /// Why tests that start, hold up or kill brokers are skipped.
    package static let skipReason = "there is no Kafka to start brokers of: KAFKA_HOME names none"

    /// The broker that tests share: each makes topics of its own.
    package static func shared() async throws -> KafkaServer { try await sharedStart.value }

    private static let sharedStart = Task { try await KafkaServer.start() }

    /// Where the brokers listen: HOST:PORT, separated by commas.
    package let servers: String
    /// How many brokers there are; they are numbered from 1.
    package let brokers: Int
    private let thread: DedicatedThread
    private let shell: Mutex<ServerShell>

    /// Makes a cluster and starts its brokers.
    ///
    /// - Parameters:
    ///   - brokers: how many; topics of Kafka's own have as many copies, up to 3.
    ///   - settings: more settings of each broker.
    package static func start(brokers: Int = 1, settings: [String: String] = [:]) async throws -> KafkaServer {
        guard let home else { throw ServerFailure(reason: skipReason) }
        let thread = try DedicatedThread(name: "kafka-server")
        return try await thread.run {
            let places = try (0..<brokers).map { _ in try BrokerSettings.Place.find() }
            let servers = places.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
            let folder = FileManager.default.temporaryDirectory.appending(path: "weir-kafka-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            for number in 1...brokers {
                let text = BrokerSettings.text(of: number, at: places, data: folder.path, settings)
                try Data(text.utf8).write(to: folder.appending(path: "broker-\(number).properties"))
            }
            let shell = try ServerShell(
                BrokerScript.text, [folder.path, home, BrokerSettings.newClusterID(), "\(brokers)"],
                environment: BrokerSettings.environment(folder: folder.path))
            return KafkaServer(servers: servers, brokers: brokers, thread: thread, shell: shell)
        }
    }

    private init(servers: String, brokers: Int, thread: DedicatedThread, shell: consuming sending ServerShell) {
        self.servers = servers
        self.brokers = brokers
        self.thread = thread
        self.shell = Mutex(shell)
    }

    /// Ends a broker as an operator does: it hands its partitions over and closes its files.
    package func stop(_ broker: Int = 1) async throws { try await command("stop \(broker)") }

    /// Ends a broker at once, with whatever it is doing.
    package func kill(_ broker: Int = 1) async throws { try await command("kill \(broker)") }

    /// Starts a broker again on what it has on its disk, and waits until it is up.
    package func startAgain(_ broker: Int = 1) async throws { try await command("start \(broker)") }

    /// Ends the brokers and starts others at their addresses: a cluster that holds nothing.
    package func replace() async throws { try await command("replace \(BrokerSettings.newClusterID())") }

    /// Has a broker do nothing until ``resume(_:)``.
    package func pause(_ broker: Int = 1) async throws { try await command("pause \(broker)") }

    /// Has a broker go on.
    package func resume(_ broker: Int = 1) async throws { try await command("resume \(broker)") }

    /// Ends the brokers and removes their folder.
    package func end() async {
        await thread.run { shell.withLock { $0.end() } }
        await thread.close()
    }

    private func command(_ command: String) async throws {
        try await thread.run { try shell.withLock { try $0.run(command) } }
    }
}
