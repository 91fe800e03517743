import FanOutLink
import NetworkLink
import SyncModel
import Testing

/// Heads reach all subscribers, over one subscription for each owner, also after connections are lost.
@Suite(.timeLimit(.minutes(5))) struct SubscriptionTests {
    private typealias Moves = Recorder<(owner: SyncID, head: TimeStamp)>

    private func subscribe(
        _ gateway: ConnectedGateway, to owners: [SyncID]
    ) -> (moves: Recorder<(owner: SyncID, head: TimeStamp)>, subscription: any FanOutSubscription) {
        let moves = Moves()
        return (moves, gateway.remote.subscribe(to: owners) { moves.record(($0, $1)) })
    }

    @Test func subscriberGetsTheHeadAndLaterMoves() async throws {
        let served = try await ServedFanOut()
        let owner = Sample.owner(of: 1)
        served.fanOut.append(Sample.rows(1...4), to: owner)
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let (moves, subscription) = subscribe(gateway, to: [owner])
        await moves.until { $0.last?.head == TimeStamp(4) }
        served.fanOut.append(Sample.rows(5...5), to: owner)
        await moves.until { $0.last?.head == TimeStamp(5) }
        served.fanOut.append(Sample.rows(1...1), to: Sample.owner(of: 2))
        served.fanOut.append(Sample.rows(6...6), to: owner)
        await moves.until { $0.last?.head == TimeStamp(6) }
        #expect(moves.values.allSatisfy { $0.owner == owner })

        subscription.cancel()
        let count = moves.values.count
        served.fanOut.append(Sample.rows(7...7), to: owner)
        #expect(try await gateway.remote.heads(of: [owner]) == [TimeStamp(7)])
        #expect(moves.values.count == count)
        await stop(gateway, served)
    }

    @Test func subscribersShareOneSubscriptionOfTheOwner() async throws {
        let served = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let owner = Sample.owner(of: 1)
        let all = (0..<10).map { _ in subscribe(gateway, to: [owner]) }
        await served.fanOut.subscribed.until { !$0.isEmpty }
        served.fanOut.append(Sample.rows(1...1), to: owner)
        for (moves, _) in all { await moves.until { $0.last?.head == TimeStamp(1) } }
        #expect(served.fanOut.subscribed.values == [owner])

        // It outlives them for a minute: a later subscriber joins it.
        for (_, subscription) in all { subscription.cancel() }
        let again = subscribe(gateway, to: [owner])
        served.fanOut.append(Sample.rows(2...2), to: owner)
        await again.moves.until { $0.last?.head == TimeStamp(2) }
        #expect(served.fanOut.subscribed.values == [owner] && served.fanOut.unsubscribed.values == [])
        again.subscription.cancel()
        for _ in 0...81 {
            await gateway.heartbeat()
            _ = try await gateway.remote.heads(of: [owner])
        }
        await served.fanOut.unsubscribed.until { $0 == [owner] }
        await stop(gateway, served)
    }

    @Test func subscriptionMovesToAnotherFanOutAndReportsTheHead() async throws {
        let one = try await ServedFanOut()
        let other = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [one.address, other.address])
        await gateway.connected(2)
        let owner = Sample.owner(of: 1)
        let (moves, subscription) = subscribe(gateway, to: [owner])
        await moves.until { $0.count == 1 }
        let isFirst = !one.fanOut.subscribed.values.isEmpty
        let (first, second) = isFirst ? (one, other) : (other, one)
        // The other fan-out is ahead: without the head, the move would be missed.
        second.fanOut.append(Sample.rows(1...3), to: owner)
        await first.server.stop()
        await moves.until { $0.last?.head == TimeStamp(3) }
        #expect(second.fanOut.subscribed.values == [owner])
        subscription.cancel()
        await stop(gateway, second)
    }

    @Test func subscriptionIsRestoredWhenTheFanOutRestarts() async throws {
        let served = try await ServedFanOut(at: Sample.ownAddress())
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let owner = Sample.owner(of: 1)
        let (moves, subscription) = subscribe(gateway, to: [owner])
        await moves.until { $0.count == 1 }
        await served.server.stop()
        await gateway.unserved.until { $0.last?.count == Sample.partitions }
        let again = try await ServedFanOut(at: served.address)
        again.fanOut.append(Sample.rows(1...2), to: owner)
        await gateway.heartbeat()
        await moves.until { $0.last?.head == TimeStamp(2) }
        subscription.cancel()
        await stop(gateway, again)
    }

    @Test func subscriptionBeforeAnyFanOutIsReadyBeginsLater() async throws {
        let served = try await ServedFanOut(ready: [])
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.connected(1)
        let owner = Sample.owner(of: 6)
        served.fanOut.append(Sample.rows(1...2), to: owner)
        let (moves, subscription) = subscribe(gateway, to: [owner])
        served.server.setReady([6])
        await moves.until { $0.last?.head == TimeStamp(2) }
        subscription.cancel()
        await stop(gateway, served)
    }

    @Test func headOfAStreamThatIsNotReadyIsSentLater() async throws {
        let served = try await ServedFanOut()
        let owner = Sample.owner(of: 6)
        served.fanOut.append(Sample.rows(1...2), to: owner)
        served.fanOut.setReady(false, owner)
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let (moves, subscription) = subscribe(gateway, to: [owner])
        await served.fanOut.subscribed.until { $0 == [owner] }
        served.fanOut.setReady(true, owner)
        await served.clock.heartbeat()
        await moves.until { $0.last?.head == TimeStamp(2) }
        subscription.cancel()
        await stop(gateway, served)
    }

    @Test func silentGatewayIsDisconnectedWithItsSubscriptions() async throws {
        let served = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let owner = Sample.owner(of: 1)
        let (moves, subscription) = subscribe(gateway, to: [owner])
        await moves.until { $0.count == 1 }
        // The gateway's clock does not advance, so it sends no heartbeats.
        for _ in 0..<4 { await served.clock.heartbeat() }
        await served.log.until("it sent nothing for 3 heartbeats")
        #expect(served.fanOut.unsubscribed.values == [owner])
        // Its next message is answered with goodbye, and it connects again.
        served.fanOut.append(Sample.rows(1...5), to: owner)
        await gateway.heartbeat()
        await gateway.log.until("it closed the connection")
        await gateway.heartbeat()
        await moves.until { $0.last?.head == TimeStamp(5) }
        subscription.cancel()
        await stop(gateway, served)
    }
}
