import FanOutLink
import Metrics
import SyncModel

/// Outcomes, heads and subscriptions; pulls are in `RemotePull.swift`.
extension RemoteFanOut: FanOutLink {
    /// A gateway keeps no state of streams: always `nil`, which means a pull is needed.
    package func idlePage(_ request: OwnerPull) -> OwnerPage? { nil }

    /// Waits for the outcome of one part of an upload, at most `within`, then throws ``FanOutError/pending``.
    ///
    /// If the fan-out stops meanwhile, or has no outcome in half of the time, another one that serves the owner's partition is
    /// asked.
    package func outcome(
        of part: PartReference, rows: RowWindow?, within limit: Duration
    ) async throws(FanOutError) -> PartOutcome {
        let response = try await send(.outcome(part, rows: rows), about: part.key.owner, within: limit)
        guard case .outcome(let outcome) = response else { throw .notReady(Self.unexpectedResponse) }
        return outcome
    }

    /// The stored outcome of a device's batch at an owner, waiting for one at most `within`; `nil` if there is none by then.
    package func keptOutcome(
        of batch: Int64, for key: DeviceKey, rows: RowWindow?, within limit: Duration
    ) async throws(FanOutError) -> PartOutcome? {
        let request = LinkRequest.keptOutcome(batch: batch, key: key, rows: rows)
        let response = try await send(request, about: key.owner, within: limit)
        guard case .keptOutcome(let outcome) = response else { throw .notReady(Self.unexpectedResponse) }
        return outcome
    }

    /// The newest timeStamp of each owner's stream, zero for an owner without rows.
    package func heads(of owners: [SyncID]) async throws(FanOutError) -> [TimeStamp] {
        var heads: [TimeStamp?] = Array(repeating: nil, count: owners.count)
        var open = Array(owners.indices)
        var routes = Routes(connections)
        while !open.isEmpty {
            let groups = try await requestGroups(
                open, owners: owners, &routes, within: .zero,
                request: { positions in .heads(positions.map { owners[$0] }) })
            open = []
            for group in groups {
                guard case .heads(let received) = group.response, received.count == group.positions.count else {
                    if group.response != nil { throw .notReady(Self.unexpectedResponse) }
                    open += group.positions
                    continue
                }
                for (position, head) in zip(group.positions, received) { heads[position] = head }
            }
            open.sort()
        }
        return heads.compactMap(\.self)
    }

    /// Rows of one owner by id or by time, from the fan-out that its pulls are sent to.
    package func rows(_ query: StreamQuery, within limit: Duration) async throws(FanOutError) -> StreamRows? {
        let response = try await send(.rows(query), about: query.owner, within: limit)
        guard case .rows(let rows) = response else { throw .notReady(Self.unexpectedResponse) }
        return rows
    }

    /// Calls `moved` with each new head of an owner, and with the current head when moves may have been missed: at first, and
    /// after a connection was lost.
    package func subscribe(
        to owners: [SyncID], moved: @escaping @Sendable (SyncID, TimeStamp) -> Void
    ) -> any FanOutSubscription {
        let subscriber = Subscriber(moved)
        connections.change { state in
            for owner in owners where state.subscriptions.add(subscriber, to: owner) {
                state.subscriptions.move(owner, to: connections.fanOut(of: owner, state) { _, _ in false })
            }
            connections.sendSubscriptions(&state)
        }
        return RemoteSubscription(subscriber, owners: owners, connections)
    }

    /// Sends a request about one owner, to one fan-out after the other until one has what is asked for.
    ///
    /// A fan-out that lags must not use up the time in which another one could answer, so while there is another one each has half
    /// of what is left.
    private func send(
        _ request: LinkRequest, about owner: SyncID, within limit: Duration
    ) async throws(FanOutError) -> LinkResponse {
        let deadline = dependencies.clock.now() + limit
        var routes = Routes(connections)
        /// The response of one that lags, for the case that no other one responds.
        var late: Result<LinkResponse, FanOutError>?
        while true {
            let fanOut: Int
            do throws(FanOutError) {
                fanOut = try routes.fanOut(for: owner)
            } catch {
                guard let late else { throw error }
                return try late.get()
            }
            if routes.failures > 0 { dependencies.metrics.retries.add() }
            let left = dependencies.clock.remaining(until: deadline)
            let hasAlternative = routes.hasAlternative(to: fanOut, for: owner)
            do throws(Failure) {
                let response = try await send(request, to: fanOut, within: hasAlternative ? left / 2 : left)
                guard hasAlternative, case .keptOutcome(nil) = response else { return response }
                late = .success(response)
                routes.exclude(lagging: fanOut, for: owner)
            } catch .failed(.pending) where hasAlternative {
                late = .failure(.pending)
                routes.exclude(lagging: fanOut, for: owner)
            } catch {
                try routes.exclude(fanOut, for: CollectionOfOne(owner), after: error)
            }
        }
    }

    /// One fan-out's response about some owners.
    struct GroupResponse: Sendable {
        let positions: [Int]
        /// `nil` if the fan-out failed and another route must be tried.
        let response: LinkResponse?
    }

    private struct GroupResult: Sendable {
        let fanOut: Int
        let positions: [Int]
        let result: Result<LinkResponse, Failure>
    }

    /// The response or failure as a value: Swift 6.3 miscompiles, with optimisation, a task of a group that creates its result
    /// around a call that throws.
    private func result(
        of request: LinkRequest, to fanOut: Int, within limit: Duration
    ) async -> Result<LinkResponse, Failure> {
        do throws(Failure) {
            return .success(try await send(request, to: fanOut, within: limit))
        } catch {
            return .failure(error)
        }
    }

    /// Sends requests about several owners to their fan-outs, concurrently.
    func requestGroups(
        _ positions: [Int], owners: [SyncID], _ routes: inout Routes, within limit: Duration,
        request: ([Int]) -> LinkRequest
    ) async throws(FanOutError) -> [GroupResponse] {
        var byRoute: [Routes.Route: [Int]] = [:]
        for position in positions { byRoute[try routes.route(for: owners[position]), default: []].append(position) }
        if routes.failures > 0 { dependencies.metrics.retries.add(byRoute.count) }
        let requests = byRoute.map { (fanOut: $0.key.fanOut, positions: $0.value, request: request($0.value)) }
        let results = await withTaskGroup(of: GroupResult.self) { group in
            for (fanOut, positions, request) in requests {
                group.addTask {
                    let result = await self.result(of: request, to: fanOut, within: limit)
                    return GroupResult(fanOut: fanOut, positions: positions, result: result)
                }
            }
            return await group.reduce(into: [GroupResult]()) { $0.append($1) }
        }
        var responses: [GroupResponse] = []
        for group in results {
            switch group.result {
            case .success(let response):
                responses.append(GroupResponse(positions: group.positions, response: response))
            case .failure(let failure):
                try routes.exclude(group.fanOut, for: group.positions.map { owners[$0] }, after: failure)
                responses.append(GroupResponse(positions: group.positions, response: nil))
            }
        }
        return responses
    }
}

/// A caller's subscription, which ends with this object at the latest.
private final class RemoteSubscription: FanOutSubscription {
    private let subscriber: Subscriber
    private let owners: [SyncID]
    private let connections: ConnectionState

    init(_ subscriber: Subscriber, owners: [SyncID], _ connections: ConnectionState) {
        self.subscriber = subscriber
        self.owners = owners
        self.connections = connections
    }

    deinit { cancel() }

    func cancel() {
        subscriber.cancel()
        connections.change { state in
            for owner in owners { state.subscriptions.remove(subscriber, from: owner) }
            connections.sendSubscriptions(&state)
        }
    }
}
