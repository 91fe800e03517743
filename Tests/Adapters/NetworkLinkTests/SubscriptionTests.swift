import FanOutLink
import NetworkLink
import SyncModel
import Testing

/// Moves reach whoever subscribed, over one subscription for an owner, whatever becomes of connections.
@Suite(.timeLimit(.minutes(3))) struct SubscriptionTests {
    private typealias Moves = Noted<(owner: SyncID, head: TimeStamp)>

    private func subscribe(
        _ gateway: ConnectedGateway, to owners: [SyncID]
    ) -> (moves: Noted<(owner: SyncID, head: TimeStamp)>, subscription: any FanOutSubscription) {
        let moves = Moves()
        return (moves, gateway.remote.subscribe(to: owners) { moves.note(($0, $1)) })
    }

    @Test func aSubscriberIsToldTheHeadAndEveryLaterMove() async throws {
        let served = try await ServedFanOut()
        let owner = Ends.owner(of: 1)
        served.fanOut.append(Ends.rows(1...4), to: owner)
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let (moves, subscription) = subscribe(gateway, to: [owner])
        await moves.until { $0.last?.head == TimeStamp(4) }
        served.fanOut.append(Ends.rows(5...5), to: owner)
        await moves.until { $0.last?.head == TimeStamp(5) }
        served.fanOut.append(Ends.rows(1...1), to: Ends.owner(of: 2))
        served.fanOut.append(Ends.rows(6...6), to: owner)
        await moves.until { $0.last?.head == TimeStamp(6) }
        #expect(moves.values.allSatisfy { $0.owner == owner })

        subscription.cancel()
        let count = moves.values.count
        served.fanOut.append(Ends.rows(7...7), to: owner)
        #expect(try await gateway.remote.heads(of: [owner]) == [TimeStamp(7)])
        #expect(moves.values.count == count)
        await stop(gateway, served)
    }

    @Test func severalSubscribersShareOneSubscriptionOfTheOwner() async throws {
        let served = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let owner = Ends.owner(of: 1)
        let all = (0..<10).map { _ in subscribe(gateway, to: [owner]) }
        await served.fanOut.subscribed.until { !$0.isEmpty }
        served.fanOut.append(Ends.rows(1...1), to: owner)
        for (moves, _) in all { await moves.until { $0.last?.head == TimeStamp(1) } }
        #expect(served.fanOut.subscribed.values == [owner])

        // It outlives them for a minute: whoever subscribes again finds it.
        for (_, subscription) in all { subscription.cancel() }
        let again = subscribe(gateway, to: [owner])
        served.fanOut.append(Ends.rows(2...2), to: owner)
        await again.moves.until { $0.last?.head == TimeStamp(2) }
        #expect(served.fanOut.subscribed.values == [owner] && served.fanOut.unsubscribed.values == [])
        again.subscription.cancel()
        for _ in 0...81 {
            await gateway.beat()
            _ = try await gateway.remote.heads(of: [owner])
        }
        await served.fanOut.unsubscribed.until { $0 == [owner] }
        await stop(gateway, served)
    }

    @Test func aSubscriptionIsMadeAnewAtAnotherFanOutAndTellsTheHead() async throws {
        let one = try await ServedFanOut()
        let other = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [one.address, other.address])
        await gateway.connected(2)
        let owner = Ends.owner(of: 1)
        let (moves, subscription) = subscribe(gateway, to: [owner])
        await moves.until { $0.count == 1 }
        let isFirst = !one.fanOut.subscribed.values.isEmpty
        let (first, second) = isFirst ? (one, other) : (other, one)
        // The other is ahead: the move is missed unless the head is told.
        second.fanOut.append(Ends.rows(1...3), to: owner)
        await first.server.stop()
        await moves.until { $0.last?.head == TimeStamp(3) }
        #expect(second.fanOut.subscribed.values == [owner])
        subscription.cancel()
        await stop(gateway, second)
    }

    @Test func aSubscriptionIsMadeAnewWhenItsFanOutComesBack() async throws {
        let served = try await ServedFanOut(at: Ends.ownAddress())
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let owner = Ends.owner(of: 1)
        let (moves, subscription) = subscribe(gateway, to: [owner])
        await moves.until { $0.count == 1 }
        await served.server.stop()
        await gateway.unserved.until { $0.last?.count == Ends.partitions }
        let again = try await ServedFanOut(at: served.address)
        again.fanOut.append(Ends.rows(1...2), to: owner)
        await gateway.beat()
        await moves.until { $0.last?.head == TimeStamp(2) }
        subscription.cancel()
        await stop(gateway, again)
    }

    @Test func aSubscriptionBeforeAnyFanOutIsThereBeginsWithIt() async throws {
        let served = try await ServedFanOut(ready: [])
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.connected(1)
        let owner = Ends.owner(of: 6)
        served.fanOut.append(Ends.rows(1...2), to: owner)
        let (moves, subscription) = subscribe(gateway, to: [owner])
        served.server.setReady([6])
        await moves.until { $0.last?.head == TimeStamp(2) }
        subscription.cancel()
        await stop(gateway, served)
    }

    @Test func aHeadThatCannotBeToldAtFirstIsToldLater() async throws {
        let served = try await ServedFanOut()
        let owner = Ends.owner(of: 6)
        served.fanOut.append(Ends.rows(1...2), to: owner)
        served.fanOut.setReady(false, owner)
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let (moves, subscription) = subscribe(gateway, to: [owner])
        await served.fanOut.subscribed.until { $0 == [owner] }
        served.fanOut.setReady(true, owner)
        await served.clock.beat()
        await moves.until { $0.last?.head == TimeStamp(2) }
        subscription.cancel()
        await stop(gateway, served)
    }

    @Test func aGatewayThatFallsSilentIsDroppedWithItsSubscriptions() async throws {
        let served = try await ServedFanOut()
        let gateway = try await ConnectedGateway(to: [served.address])
        await gateway.served()
        let owner = Ends.owner(of: 1)
        let (moves, subscription) = subscribe(gateway, to: [owner])
        await moves.until { $0.count == 1 }
        // The gateway's clock stands still, and with it its beats.
        for _ in 0..<4 { await served.clock.beat() }
        await served.log.until("it has fallen silent")
        #expect(served.fanOut.unsubscribed.values == [owner])
        // Once it speaks again it learns so, and begins anew.
        served.fanOut.append(Ends.rows(1...5), to: owner)
        await gateway.beat()
        await gateway.log.until("it said goodbye")
        await gateway.beat()
        await moves.until { $0.last?.head == TimeStamp(5) }
        subscription.cancel()
        await stop(gateway, served)
    }
}
