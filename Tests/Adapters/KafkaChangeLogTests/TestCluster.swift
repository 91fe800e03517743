import AsyncPrimitives
import ChangeLog
import Foundation
import Fuzzing
import KafkaChangeLog
import KafkaServer

/// The cluster of the tests: the one that `KAFKA_BOOTSTRAP_SERVERS` names, else a broker of `KAFKA_HOME` that is
/// started for them, else librdkafka's mock cluster within the process, one for each test.
enum TestCluster {
    /// The brokers of an external cluster.
    static let named: String? = {
        guard let servers = ProcessInfo.processInfo.environment["KAFKA_BOOTSTRAP_SERVERS"], !servers.isEmpty else {
            return nil
        }
        return servers
    }()

    /// Whether the broker was started by the tests, which can pause it.
    private static let isOwn = named == nil && KafkaServer.home != nil

    /// The broker started by the tests.
    static func own() async throws -> KafkaServer? { isOwn ? try await KafkaServer.shared() : nil }

    /// Whether there are real brokers, which have retention, topic settings and LogAppendTime.
    static let isReal: Bool = {
        if named == nil && KafkaServer.home == nil {
            print("KafkaChangeLogTests run on a mock cluster: set KAFKA_HOME or KAFKA_BOOTSTRAP_SERVERS for a real one")
            return false
        }
        return true
    }()

    /// Whether tests can pause the brokers.
    static var canStall: Bool { !isReal || isOwn }

    /// Whether tests can start and kill brokers, which takes minutes.
    static var mayKill: Bool { KafkaServer.home != nil && TestLength.current == .long }
}

extension TestCluster {
    /// The number of tests that use a cluster concurrently.
    private static let slots = Slots(isReal ? 3 : 16)

    /// Runs a test when fewer than that run.
    static func whenFree(_ body: () async throws -> Void) async throws {
        await slots.acquire()
        let result = await Result.capturing { try await body() }
        await slots.release()
        try result.get()
    }

    private actor Slots {
        private var free: Int
        private var waiting: [CheckedContinuation<Void, Never>] = []

        init(_ count: Int) { free = count }

        func acquire() async {
            guard free == 0 else {
                free -= 1
                return
            }
            await withCheckedContinuation { waiting.append($0) }
        }

        func release() {
            if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
        }
    }
}
