import FanOutLink
import NetworkLink
import SyncModel
import Testing

/// Requests for an owner go to a fan-out that serves it; another one is tried if that fails.
@Suite(.timeLimit(.minutes(5))) struct RoutingTests {
    @Test func requestsGoToAFanOutThatServesThePartition() async throws {
        let even = try await ServedFanOut(ready: [0, 2, 4, 6])
        let odd = try await ServedFanOut(ready: [1, 3, 5, 7])
        let gateway = try await ConnectedGateway(to: [even.address, odd.address])
        await gateway.served()
        for partition in 0..<Sample.partitions {
            let owner = Sample.owner(of: partition)
            let here = partition.isMultiple(of: 2) ? even : odd
            here.fanOut.append(Sample.rows(1...(partition + 1)), to: owner)
            #expect(try await gateway.remote.heads(of: [owner]) == [TimeStamp(Int64(partition + 1))])
        }
        let owners = (0..<Sample.partitions).map { Sample.owner(of: $0) }
        #expect(try await gateway.remote.heads(of: owners) == (1...8).map { TimeStamp($0) })
        await stop(gateway, even, odd)
    }

    @Test func ownerStaysWithOneFanOutAndOwnersAreSpread() async throws {
        let one = try await ServedFanOut()
        let other = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [one.address, other.address])
        await gateway.connected(2)
        let owners = (0..<64).map { SyncID(unchecked: "owner \($0)") }
        for owner in owners + owners {
            _ = try await gateway.remote.pull(Sample.pull([owner]), within: .zero)
        }
        let first = Set(one.fanOut.pulls.values.flatMap(\.owners).map(\.owner))
        let second = Set(other.fanOut.pulls.values.flatMap(\.owners).map(\.owner))
        #expect(first.isDisjoint(with: second) && first.count + second.count == 64)
        #expect(first.count > 8 && second.count > 8, "\(first.count) and \(second.count)")
        await stop(gateway, one, other)
    }

    /// The head of an owner, whose fan-out it tells.
    private func head(of owner: SyncID, _ gateway: ConnectedGateway) async throws -> Int64 {
        try await gateway.remote.heads(of: [owner])[0].rawValue
    }

    /// The streams of two fan-outs differ all the time by what is under way; one that lags lacks what another had long before.
    @Test func requestsGoToAFanOutThatDoesNotLag() async throws {
        let pair = [try await ServedFanOut(), try await ServedFanOut()]
        let gateway = try await ConnectedGateway(to: pair.map(\.address))
        await gateway.connected(2)
        let owner = Sample.owner(of: 3)
        for (number, served) in pair.enumerated() {
            served.fanOut.append(Sample.rows(1...(number + 1)), to: owner)
        }
        let first = Int(try await head(of: owner, gateway)) - 1
        let second = 1 - first
        func passed(_ offset: Int64, at fanOut: Int, of partition: Int = 3) async {
            let progress = UploadProgress(offset: offset, part: 0)
            let report = StreamReport(partition: partition, uploads: [partition: progress])
            let before = gateway.passed.values.count
            pair[fanOut].server.passed(report)
            await gateway.passed.until { $0.dropFirst(before).contains(report) }
        }
        // A response that follows shows that the link's thread has counted it. Each fan-out reports something, so that none is taken for
        // silent by heartbeats that follow at once.
        var heartbeats: Int64 = 0
        func heartbeat() async throws {
            await gateway.heartbeat()
            _ = try await head(of: owner, gateway)
            heartbeats += 1
            for fanOut in pair.indices { await passed(heartbeats, at: fanOut, of: 5) }
        }
        // Until a heartbeat after the other one was ahead, this one may be as far.
        await passed(5, at: second)
        try await heartbeat()
        #expect(try await head(of: owner, gateway) == first + 1)
        await passed(4, at: first)
        await passed(9, at: second)
        try await heartbeat()
        #expect(try await head(of: owner, gateway) == second + 1)
        // Other partitions are not affected.
        let others = (0..<32).map { Sample.owner(of: 2, $0) }
        for other in others { _ = try await gateway.remote.pull(Sample.pull([other]), within: .zero) }
        #expect(pair[first].fanOut.pulls.values.count > 4)

        // It has caught up with what the other one had at the heartbeat before; owners come back after some more.
        await passed(9, at: first)
        await passed(10, at: second)
        try await heartbeat()
        #expect(try await head(of: owner, gateway) == second + 1)
        await passed(10, at: first)
        for _ in 1..<8 { try await heartbeat() }
        #expect(try await head(of: owner, gateway) == first + 1)

        // The one that is ahead is gone.
        await passed(20, at: second)
        try await heartbeat()
        try await heartbeat()
        #expect(try await head(of: owner, gateway) == second + 1)
        await pair[second].server.stop()
        await gateway.log.until("Fan-out unavailable")
        #expect(try await head(of: owner, gateway) == first + 1)
        await stop(gateway, pair[first])
    }

    @Test func unservedPartitionIsNotReady() async throws {
        let served = try await ServedFanOut(ready: [0, 1])
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.unserved.until { $0.last == [2, 3, 4, 5, 6, 7] }
        #expect(gateway.remote.unservedPartitions == [2, 3, 4, 5, 6, 7])
        await #expect(throws: FanOutError.notReady("no fan-out serves partition 5")) {
            try await gateway.remote.pull(Sample.pull([Sample.owner(of: 0), Sample.owner(of: 5)]), within: .seconds(1))
        }
        #expect(try await gateway.remote.heads(of: [Sample.owner(of: 1)]) == [.zero])

        served.server.setReady(Set(0..<Sample.partitions))
        await gateway.served()
        #expect(try await gateway.remote.heads(of: [Sample.owner(of: 5)]) == [.zero])
        served.server.setReady([])
        await gateway.unserved.until { $0.last?.count == Sample.partitions }
        await #expect(throws: FanOutError.self) { try await gateway.remote.heads(of: [Sample.owner(of: 5)]) }
        await stop(gateway, served)
    }

    @Test func waitContinuesAtAnotherFanOutWhenTheFirstStops() async throws {
        let pair = try await Pair()
        let (gateway, part) = (pair.gateway, Sample.part(of: Sample.owner(of: 2)))
        let outcome = Task { try await gateway.remote.outcome(of: part, rows: .all, within: .seconds(100)) }
        let (first, second) = await pair.firstAndOther()
        await first.server.stop()
        await second.fanOut.waits.until { $0.count == 1 }
        second.fanOut.decide(part, PartOutcome(refusal: .batchMismatch))
        #expect(try await outcome.value == PartOutcome(refusal: .batchMismatch))
        #expect(gateway.remote.unservedPartitions == [])
        await stop(gateway, second)
    }

    @Test func waitContinuesAtAnotherFanOutWhenTheFirstHangs() async throws {
        let pair = try await Pair()
        let (gateway, part) = (pair.gateway, Sample.part(of: Sample.owner(of: 2)))
        let outcome = Task { try await gateway.remote.outcome(of: part, rows: .all, within: .seconds(100)) }
        let (first, second) = await pair.firstAndOther()
        let other = try await pair.owner(of: second)
        // A subscription to the stalled owner blocks the server's thread.
        let trap = try await ConnectedGateway(to: [first.address])
        await trap.served()
        let subscription = trap.remote.subscribe(to: [first.fanOut.stall.owner]) { _, _ in }
        await first.fanOut.stall.held.until { !$0.isEmpty }
        for _ in 0..<4 {
            await gateway.heartbeat()
            _ = try await gateway.remote.heads(of: [other])
        }
        await gateway.log.until("it sent nothing for 3 heartbeats")
        await second.fanOut.waits.until { $0.count == 1 }
        second.fanOut.decide(part, PartOutcome(isRepeat: true))
        #expect(try await outcome.value == PartOutcome(isRepeat: true))
        first.fanOut.stall.end()
        subscription.cancel()
        await trap.remote.stop()
        await stop(gateway, first, second)
    }

    /// What one that lags does not have yet, another one may have.
    @Test func outcomesThatOneFanOutLacksAreAskedOfAnother() async throws {
        let pair = try await Pair()
        let (gateway, part) = (pair.gateway, Sample.part(of: Sample.owner(of: 2)))
        let key = part.key
        for served in pair.fanOuts { served.fanOut.setLagging(true, key.owner) }
        await #expect(throws: FanOutError.pending) {
            try await gateway.remote.outcome(of: part, rows: .all, within: .seconds(100))
        }
        #expect(try await gateway.remote.keptOutcome(of: 7, for: key, rows: nil, within: .zero) == nil)
        let (first, second) = await pair.firstAndOther()
        second.fanOut.setLagging(false, key.owner)
        let outcome = Task { try await gateway.remote.outcome(of: part, rows: .all, within: .seconds(100)) }
        await second.fanOut.waits.until { $0.count == 1 }
        second.fanOut.decide(part, PartOutcome(isRepeat: true))
        #expect(try await outcome.value == PartOutcome(isRepeat: true))
        #expect(
            try await gateway.remote.keptOutcome(of: 7, for: key, rows: nil, within: .zero)
                == PartOutcome(isRepeat: true))
        #expect(first.fanOut.waits.values.isEmpty)
        await stop(gateway, first, second)
    }

    @Test func restartedFanOutIsUsedAgain() async throws {
        let served = try await ServedFanOut(at: Sample.ownAddress())
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        await served.server.stop()
        await gateway.unserved.until { $0.last?.count == Sample.partitions }
        await #expect(throws: FanOutError.self) { try await gateway.remote.heads(of: [Sample.owner(of: 0)]) }
        let again = try await ServedFanOut(at: served.address)
        again.fanOut.append(Sample.rows(1...3), to: Sample.owner(of: 0))
        await gateway.heartbeat()
        await gateway.served()
        #expect(try await gateway.remote.heads(of: [Sample.owner(of: 0)]) == [TimeStamp(3)])
        await stop(gateway, again)
    }

    @Test func gatewayConnectsToAFanOutThatStartsLater() async throws {
        // A port that was free a moment ago.
        let gone = try await ServedFanOut(at: Sample.ownAddress())
        await gone.server.stop()
        let gateway = try await ConnectedGateway(to: [gone.address])
        await gateway.log.until("it cannot be reached")
        let served = try await ServedFanOut(at: gone.address)
        for _ in 0..<4 { await gateway.heartbeat() }
        await gateway.served()
        await stop(gateway, served)
    }

    @Test func fanOutWithADifferentEpochIsRejected() async throws {
        let other = try await ServedFanOut(epoch: "e2")
        let gateway = try await ConnectedGateway(to: [other.address])
        await gateway.log.until("its epoch is e2, this gateway's is e1")
        await other.log.until("Gateway with a different epoch rejected")
        #expect(gateway.remote.unservedPartitions.count == Sample.partitions)
        await #expect(throws: FanOutError.self) { try await gateway.remote.heads(of: [Sample.owner(of: 0)]) }
        await stop(gateway, other)
    }

    @Test func fanOutWithADifferentNumberOfPartitionsIsRejected() async throws {
        let other = try await ServedFanOut(partitions: 16)
        let gateway = try await ConnectedGateway(to: [other.address])
        await gateway.log.until("it has 16 partitions, this gateway 8")
        #expect(gateway.remote.unservedPartitions.count == Sample.partitions)
        await stop(gateway, other)
    }

    @Test func streamsThatAreNotReadyAreReadFromAnotherFanOut() async throws {
        let one = try await ServedFanOut()
        let other = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [one.address, other.address])
        await gateway.connected(2)
        let owners = (0..<Sample.partitions).map { Sample.owner(of: $0) }
        for owner in owners {
            one.fanOut.append(Sample.rows(1...2), to: owner)
            other.fanOut.append(Sample.rows(1...2), to: owner)
        }
        for owner in owners[..<4] { one.fanOut.setReady(false, owner) }
        for owner in owners[4...] { other.fanOut.setReady(false, owner) }
        #expect(try await gateway.remote.heads(of: owners) == owners.map { _ in TimeStamp(2) })
        let request = Sample.pull(owners)
        #expect(try await gateway.remote.pull(request, within: .zero) == one.fanOut.pages(request))
        one.fanOut.setReady(false, owners[7])
        await #expect(throws: FanOutError.notReady("it is rebuilt")) {
            try await gateway.remote.pull(request, within: .zero)
        }
        await stop(gateway, one, other)
    }

}

/// Two fan-outs that serve all partitions, and a gateway connected to both.
private struct Pair {
    let gateway: ConnectedGateway
    let fanOuts: [ServedFanOut]
    private let requests = Recorder<Int>()

    init() async throws {
        fanOuts = [
            try await ServedFanOut(ScriptedFanOut(number: 0, requests: requests)),
            try await ServedFanOut(ScriptedFanOut(number: 1, requests: requests)),
        ]
        gateway = try await ConnectedGateway(to: fanOuts.map(\.address))
        await gateway.connected(2)
    }

    /// The fan-out that got the first request for an outcome, and the other one.
    func firstAndOther() async -> (ServedFanOut, ServedFanOut) {
        await requests.until { !$0.isEmpty }
        let first = requests.values[0]
        return (fanOuts[first], fanOuts[1 - first])
    }

    /// An owner whose requests go to one of them.
    func owner(of served: ServedFanOut) async throws -> SyncID {
        var number = 0
        while true {
            number += 1
            let owner = SyncID(unchecked: "probe \(number)")
            _ = try await gateway.remote.pull(Sample.pull([owner]), within: .zero)
            if served.fanOut.pulls.values.contains(where: { $0.owners[0].owner == owner }) { return owner }
        }
    }
}

func stop(_ gateway: ConnectedGateway, _ served: ServedFanOut...) async {
    await gateway.remote.stop()
    for served in served { await served.server.stop() }
}
