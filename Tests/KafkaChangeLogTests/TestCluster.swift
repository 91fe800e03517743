import ChangeLog
import Foundation
import Kafka
import KafkaChangeLog
import MockKafka

/// The cluster that the tests run on: the one that `KAFKA_BOOTSTRAP_SERVERS` names, else a broker of `KAFKA_HOME` that is
/// started for them, else, for each test, librdkafka's mock cluster within the process.
enum TestCluster {
    /// A broker of the tests' own, which can be held up.
    static let own: OwnBroker? = {
        let environment = ProcessInfo.processInfo.environment
        let isNamed = !(environment["KAFKA_BOOTSTRAP_SERVERS"] ?? "").isEmpty
        guard !isNamed, let home = environment["KAFKA_HOME"], !home.isEmpty else { return nil }
        return OwnBroker.start(home: home)
    }()

    /// Brokers that are real, if there are some.
    static let brokers: String? = {
        if let servers = ProcessInfo.processInfo.environment["KAFKA_BOOTSTRAP_SERVERS"], !servers.isEmpty {
            return servers
        }
        if let own { return own.servers }
        print("KafkaChangeLogTests run on a mock cluster: set KAFKA_HOME or KAFKA_BOOTSTRAP_SERVERS for a real one")
        return nil
    }()

    /// Whether a test can hold up the brokers.
    static var canStall: Bool { brokers == nil || own != nil }

    /// Whether there is a broker to start and minutes to spend on killing it.
    static var mayKill: Bool { own != nil && ProcessInfo.processInfo.environment["WEIR_TEST_LONG"] != nil }

    /// Whether a test can have what only a broker has: retention, settings of topics, time of the log's own.
    static var isReal: Bool { brokers != nil }
}

extension TestCluster {
    /// How many tests a cluster serves at a time.
    private static let places = Places(isReal ? 3 : 16)

    /// Runs a test when there is a place for it.
    static func whenFree(_ body: () async throws -> Void) async throws {
        await places.take()
        let result = await Result.capturing { try await body() }
        await places.give()
        try result.get()
    }

    private actor Places {
        private var free: Int
        private var waiting: [CheckedContinuation<Void, Never>] = []

        init(_ count: Int) { free = count }

        func take() async {
            guard free == 0 else {
                free -= 1
                return
            }
            await withCheckedContinuation { waiting.append($0) }
        }

        func give() {
            if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
        }
    }
}
