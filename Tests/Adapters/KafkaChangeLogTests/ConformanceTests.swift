import ChangeLogConformance
import Testing

@Suite(.timeLimit(.minutes(5))) struct ConformanceTests {
    @Test(arguments: behaviours(of: .any))
    func behavesAsEveryLog(_ behaviour: LogBehaviour<KafkaLogHarness>) async throws {
        try await check(behaviour)
    }

    @Test(.enabled(if: TestCluster.canStall, "these brokers cannot be paused"), arguments: behaviours(of: .ownBroker))
    func behavesAsEveryLogWhoseWritesStall(_ behaviour: LogBehaviour<KafkaLogHarness>) async throws {
        try await check(behaviour)
    }

    @Test(.enabled(if: TestCluster.isReal, "the mock cluster has no retention"), arguments: behaviours(of: .retention))
    func behavesAsEveryLogWithRetention(_ behaviour: LogBehaviour<KafkaLogHarness>) async throws {
        try await check(behaviour)
    }

    @Test(
        .enabled(if: TestCluster.isReal, "the mock cluster's groups take seconds for each new member"),
        arguments: behaviours(of: .groups))
    func behavesAsEveryLogWithGroups(_ behaviour: LogBehaviour<KafkaLogHarness>) async throws {
        try await check(behaviour)
    }

    private func check(_ behaviour: LogBehaviour<KafkaLogHarness>) async throws {
        try await TestCluster.whenFree {
            let harness = try await KafkaLogHarness.make()
            try await behaviour.check(harness)
            try await harness.remove()
        }
    }

    private enum Need: CaseIterable {
        case retention
        case groups
        case ownBroker
        case any
    }

    private static func behaviours(of need: Need) -> [LogBehaviour<KafkaLogHarness>] {
        LogBehaviour<KafkaLogHarness>.all.filter { self.need(of: $0) == need }
    }

    /// What a behaviour requires of its cluster; a new behaviour requires nothing.
    private static func need(of behaviour: LogBehaviour<KafkaLogHarness>) -> Need {
        let words: [(Need, [String])] = [
            (
                .retention,
                ["retention", "removes only", "keeps what a group", "keeps records at or above", "keeps everything of"]
            ),
            (
                .groups,
                [
                    "members", "shares the one partition", "a rebalance", "worker before", "worker whose", "rethrows",
                    "committed offsets after a restart", "has left", "by cancellation",
                ]
            ),
            (.ownBroker, ["while the queue is full", "closes"]),
        ]
        return words.first { $0.1.contains { behaviour.testDescription.contains($0) } }?.0 ?? .any
    }
}
