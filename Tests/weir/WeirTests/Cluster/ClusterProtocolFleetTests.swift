import Fuzzing
import Seeded
import Synchronization
import Testing

/// Devices of all protocols edit the same rows, at two gateways on Kafka and Postgres.
@Suite(
    .timeLimit(.minutes(10)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct ClusterProtocolFleetTests {
    @Test(arguments: TestLength.seeds(2, short: 1, long: 5))
    func appsOfAllProtocolsEndEqualAndNoEditIsLostButByThePolicy(seed: UInt64) async throws {
        let cluster = try await WeirCluster.make(
            .init(
                clock: "log-time", schema: ProtocolFleet.schema, settings: ["faces": "[crud, rest, sqlitenow, tracker]"]
            ))
        let members = try await cluster.startTwoOfEach()
        let ports = members.filter { $0.role == .gateway }.map(\.port)
        let random = Mutex(SeededRandom(seed: seed))
        let fleet = try ProtocolFleet(ports: ports, in: try TestFolder(), seed: seed) {
            guard let member = random.withLock({ members.randomElement(using: &$0) }) else { return }
            await member.kill()
            try member.startAgain()
            try await member.untilReady()
            for member in members { try await member.untilReadyAgain() }
        }
        try await fleet.play(TestLength.count(120, short: 60, long: 120))
        for member in members.reversed() { await member.stop() }
    }
}
