import FanOutLink
import Metrics
import SyncModel
import SyncWire

/// Messages of a gateway that has said hello.
extension ServerLoop {
    func handle(_ message: GatewayMessage, of gateway: GatewayConnection) throws {
        switch message {
        case .hello: try dismiss(gateway.id, "hello was sent twice")
        case .request(let number, let limit, let request): try begin(request, number, within: limit, of: gateway)
        case .cancel(let numbers):
            for number in numbers { gateway.tasks.removeValue(forKey: number)?.cancel() }
        case .subscribe(let owners): try subscribe(gateway, to: owners)
        case .unsubscribe(let owners):
            for owner in owners {
                gateway.subscriptions.removeValue(forKey: owner)?.cancel()
                gateway.missingHeads.remove(owner)
                gateway.moves[owner] = nil
            }
        case .ping(let received):
            gateway.recordReceived(received)
            try send(FanOutMessage.pong.encode(), to: gateway)
        case .unknown: break
        }
    }

    private func begin(
        _ request: LinkRequest, _ number: Int64, within limit: Duration, of gateway: GatewayConnection
    ) throws {
        guard gateway.tasks[number] == nil else {
            return try dismiss(gateway.id, "a request number was used twice")
        }
        guard inFlight < configuration.maximumRequests, gateway.tasks.count < configuration.maximumRequestsOfGateway
        else { return try fail(number, "too many requests are in flight", to: gateway) }
        inFlight += 1
        metrics.underWay.set(inFlight)
        gateway.tasks[number] = Task { [fanOut, inbox, gateway = gateway.number] in
            let response = await request.response(within: limit, from: fanOut)
            // The gateway does not wait for the response to a cancelled request.
            let bytes = Task.isCancelled ? [] : FanOutMessage.response(number: number, response).encode()
            inbox.finished(gateway, number, bytes)
        }
    }

    // MARK: Subscriptions

    private func subscribe(_ gateway: GatewayConnection, to owners: [SyncID]) throws {
        for owner in owners where gateway.subscriptions[owner] == nil {
            guard gateway.subscriptions.count < Self.maximumSubscriptions else {
                return try dismiss(gateway.id, "it is subscribed to \(Self.maximumSubscriptions) owners already")
            }
            let subscription = fanOut.subscribe(to: [owner]) { [inbox, gateway = gateway.number] owner, head in
                inbox.move(gateway, owner, head)
            }
            gateway.subscriptions[owner] = subscription
        }
        // After the subscription, so that no move is missed.
        sendHeads(of: owners, to: gateway)
    }

    /// Sends the heads of owners whose streams are ready; those of the others are read again at the next heartbeat.
    func sendHeads(of owners: [SyncID], to gateway: GatewayConnection) {
        let byPartition = Dictionary(grouping: owners) { partitioning.partition(of: $0) }
        for owners in byPartition.values {
            gateway.missingHeads.formUnion(owners)
            guard inFlight < configuration.maximumRequests else { continue }
            inFlight += 1
            Task { [fanOut, inbox, gateway = gateway.number] in
                do throws(FanOutError) {
                    let heads = try await fanOut.heads(of: owners)
                    for (owner, head) in zip(owners, heads) { inbox.move(gateway, owner, head) }
                } catch {
                    // Not ready: the owners stay in `missingHeads`.
                }
                inbox.finished(gateway, nil, [])
            }
        }
    }
}

extension LinkRequest {
    fileprivate func response(within limit: Duration, from fanOut: any FanOutLink) async -> LinkResponse {
        do throws(FanOutError) {
            switch self {
            case .pull(let pull): return .pages(try await fanOut.pull(pull, within: limit))
            case .outcome(let part, let rows):
                return .outcome(try await fanOut.outcome(of: part, rows: rows, within: limit))
            case .keptOutcome(let batch, let key, let rows):
                return .keptOutcome(try await fanOut.keptOutcome(of: batch, for: key, rows: rows, within: limit))
            case .heads(let owners): return .heads(try await fanOut.heads(of: owners))
            case .rows(let query): return .rows(try await fanOut.rows(query, within: limit))
            }
        } catch {
            return .failure(error)
        }
    }
}
