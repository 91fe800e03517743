import Configuration
import FanOut
import FanOutLink
import NetworkLink
import Observability
import SyncModel
import Synchronization
import TestClocks
import Testing

/// Fan-outs over the network answer as a fan-out in the same process.
@Suite(.timeLimit(.minutes(5))) struct OverTheNetworkTests {
    private static let owners = (0..<12).map { SyncID(unchecked: "owner \($0)") }

    /// Runs two fan-outs that serve a half each and share the middle, one that serves all, and a gateway of the two.
    private func withLink(
        _ world: World, _ body: (RemoteFanOut, _ whole: Service, _ halves: [Service]) async throws -> Void
    ) async throws {
        try await withFolder { folder in
            try await withFanOut(world, in: folder + "/whole") { whole in
                try await withFanOut(world, in: folder + "/low", partitions: [0, 1, 2]) { low in
                    try await withFanOut(world, in: folder + "/high", partitions: [1, 2, 3]) { high in
                        try await serve(world, [(low, [0, 1, 2]), (high, [1, 2, 3])]) { remote in
                            try await body(remote, whole, [low, high])
                        }
                    }
                }
            }
        }
    }

    private func serve(
        _ world: World, _ services: [(service: Service, partitions: Set<Int>)],
        _ body: (RemoteFanOut) async throws -> Void
    ) async throws {
        var servers: [FanOutServer] = []
        var addresses: [NetworkAddress] = []
        for (service, partitions) in services {
            let server = try FanOutServer(
                FanOutServerConfiguration(address: NetworkAddress("127.0.0.1:0")!), link: LinkConfiguration(),
                serving: service.fanOut,
                description: LinkDescription(
                    epoch: world.history.epoch, partitions: world.partitions, ready: partitions),
                logger: .disabled, clock: ManualClock())
            addresses.append(try await server.start())
            servers.append(server)
        }
        let (unserved, continuation) = AsyncStream.makeStream(of: Set<Int>.self)
        let remote = try RemoteFanOut(
            RemoteFanOutConfiguration(fanOuts: addresses), link: LinkConfiguration(), epoch: world.history.epoch,
            partitions: world.partitions, logger: .disabled, clock: ManualClock(), unserved: { continuation.yield($0) })
        try await remote.start()
        for await partitions in unserved where partitions.isEmpty { break }
        try await body(remote)
        await remote.stop()
        for server in servers { await server.stop() }
    }

    @Test func pagesAreThoseOfAFanOutInTheSameProcess() async throws {
        let world = World(partitions: 4)
        for (number, owner) in Self.owners.enumerated() {
            let persons = (0..<(number % 5)).map { Change.person("p\($0)", name: "a name of \(number)", index: $0) }
            if !persons.isEmpty { try world.upload(persons, owner: owner) }
        }
        try await withLink(world) { remote, whole, halves in
            try await whole.caughtUp(with: world)
            for (service, partitions) in zip(halves, [[0, 1, 2], [1, 2, 3]]) {
                for partition in partitions {
                    try await service.events.applied(upTo: try await world.end(partition), of: partition)
                }
            }
            let pulls = Self.owners.map { OwnerPull(owner: $0, knowledge: OwnerKnowledge()) }
            for limit in 1...25 {
                for bytes in [1, 500, 1500, 100_000] {
                    let request = PagePull(owners: pulls, limit: limit, maximumBytes: bytes)
                    let expected = try await whole.fanOut.pull(request, within: .seconds(60))
                    #expect(try await remote.pull(request, within: .seconds(60)) == expected, "\(limit), \(bytes)")
                }
            }
            #expect(try await remote.heads(of: Self.owners) == whole.fanOut.heads(of: Self.owners))
        }
    }

    @Test func anUploadWakesAWaitAndASubscription() async throws {
        let world = World(partitions: 4)
        try await withLink(world) { remote, whole, _ in
            let owner = Self.owners[3]
            let (moves, continuation) = AsyncStream.makeStream(of: TimeStamp.self)
            let subscription = remote.subscribe(to: [owner]) { continuation.yield($1) }
            var heads = moves.makeAsyncIterator()
            #expect(await heads.next() == .zero)
            let part = try world.upload([.person("p1")], owner: owner, batch: 1)
            let outcome = try await remote.outcome(of: part, rows: .all, within: .seconds(60))
            #expect(try await whole.fanOut.outcome(of: part, rows: .all, within: .seconds(60)) == outcome)
            #expect(outcome.results.count == 1)
            while let head = await heads.next(), head == .zero {}
            #expect(try await remote.heads(of: [owner]) != [.zero])
            #expect(try await remote.keptOutcome(of: 1, for: part.key, rows: .all, within: .zero)?.isRepeat == true)
            subscription.cancel()
        }
    }
}
