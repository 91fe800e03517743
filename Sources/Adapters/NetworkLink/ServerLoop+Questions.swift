import FanOutLink
import LinkWire
import Metrics
import SyncModel
import SyncWire

/// What a gateway may say once it is known.
extension ServerLoop {
    func handle(_ request: LinkRequest, of gateway: ServedGateway) throws {
        switch request {
        case .hello: try dismiss(gateway.id, "it said hello twice")
        case .ask(let number, let limit, let question): try answer(question, number, within: limit, to: gateway)
        case .cancel(let numbers):
            for number in numbers { gateway.tasks.removeValue(forKey: number)?.cancel() }
        case .subscribe(let owners): try subscribe(gateway, to: owners)
        case .unsubscribe(let owners):
            for owner in owners {
                gateway.subscriptions.removeValue(forKey: owner)?.cancel()
                gateway.owed.remove(owner)
                gateway.moves[owner] = nil
            }
        case .ping(let received):
            gateway.noteReceived(received)
            try send(LinkReply.pong.encode(), to: gateway)
        case .unknown: break
        }
    }

    private func answer(
        _ question: LinkQuery, _ number: Int64, within limit: Duration, to gateway: ServedGateway
    ) throws {
        guard gateway.tasks[number] == nil else {
            return try dismiss(gateway.id, "it used the number of a question twice")
        }
        guard underWay < configuration.maximumRequests, gateway.tasks.count < configuration.maximumRequestsOfGateway
        else { return try fail(number, "too many questions are under way", to: gateway) }
        underWay += 1
        metrics.underWay.set(underWay)
        gateway.tasks[number] = Task { [fanOut, inbox, place = gateway.number] in
            let answer = await question.answer(within: limit, from: fanOut)
            // Whoever cancelled does not wait for it.
            let bytes = Task.isCancelled ? [] : LinkReply.answer(number: number, answer).encode()
            inbox.answer(place, number, bytes)
        }
    }

    // MARK: Moves

    private func subscribe(_ gateway: ServedGateway, to owners: [SyncID]) throws {
        for owner in owners where gateway.subscriptions[owner] == nil {
            guard gateway.subscriptions.count < Self.maximumSubscriptions else {
                return try dismiss(gateway.id, "it watches \(Self.maximumSubscriptions) owners already")
            }
            let subscription = fanOut.subscribe(to: [owner]) { [inbox, place = gateway.number] owner, head in
                inbox.move(place, owner, head)
            }
            gateway.subscriptions[owner] = subscription
        }
        // Subscribed before the heads are read, so that no move is missed.
        tellHeads(of: owners, to: gateway)
    }

    /// Tells the heads of owners, where their streams are ready; of the others at a later beat.
    func tellHeads(of owners: [SyncID], to gateway: ServedGateway) {
        let byPartition = Dictionary(grouping: owners) { partitioning.partition(of: $0) }
        for owners in byPartition.values {
            gateway.owed.formUnion(owners)
            guard underWay < configuration.maximumRequests else { continue }
            underWay += 1
            Task { [fanOut, inbox, place = gateway.number] in
                do throws(FanOutError) {
                    let heads = try await fanOut.heads(of: owners)
                    for (owner, head) in zip(owners, heads) { inbox.move(place, owner, head) }
                } catch {
                    // Not ready: they stay owed, and are asked for at the next beat.
                }
                inbox.answer(place, nil, [])
            }
        }
    }
}

extension LinkQuery {
    /// What a fan-out says to it.
    fileprivate func answer(within limit: Duration, from fanOut: any FanOutLink) async -> LinkAnswer {
        do throws(FanOutError) {
            switch self {
            case .pull(let pull): return .pages(try await fanOut.pull(pull, within: limit))
            case .outcome(let part): return .outcome(try await fanOut.outcome(of: part, within: limit))
            case .keptOutcome(let batch, let key):
                return .keptOutcome(try await fanOut.keptOutcome(of: batch, for: key, within: limit))
            case .heads(let owners): return .heads(try await fanOut.heads(of: owners))
            }
        } catch {
            return .failure(error)
        }
    }
}
