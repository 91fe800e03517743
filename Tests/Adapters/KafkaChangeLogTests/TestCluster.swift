import AsyncPrimitives
import ChangeLog
import Foundation
import Fuzzing
import KafkaChangeLog
import KafkaServer

/// The cluster that the tests run on: the one that `KAFKA_BOOTSTRAP_SERVERS` names, else a broker of `KAFKA_HOME` that is
/// started for them, else, for each test, librdkafka's mock cluster within the process.
enum TestCluster {
    /// Brokers that somebody else runs.
    static let named: String? = {
        guard let servers = ProcessInfo.processInfo.environment["KAFKA_BOOTSTRAP_SERVERS"], !servers.isEmpty else {
            return nil
        }
        return servers
    }()

    /// Whether the broker is one of the tests' own, which can be held up.
    private static let isOwn = named == nil && KafkaServer.home != nil

    /// That broker.
    static func own() async throws -> KafkaServer? { isOwn ? try await KafkaServer.shared() : nil }

    /// Whether a test can have what only a broker has: retention, settings of topics, time of the log's own.
    static let isReal: Bool = {
        if named == nil && KafkaServer.home == nil {
            print("KafkaChangeLogTests run on a mock cluster: set KAFKA_HOME or KAFKA_BOOTSTRAP_SERVERS for a real one")
            return false
        }
        return true
    }()

    /// Whether a test can hold up the brokers.
    static var canStall: Bool { !isReal || isOwn }

    /// Whether there is a broker to start and minutes to spend on killing it.
    static var mayKill: Bool { KafkaServer.home != nil && TestLength.current == .long }
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
