import Synchronization

/// The network of a fleet, which fails at a chosen request.
final class FleetNetwork: DeviceClient.Network {
    enum Failure: CaseIterable {
        case request
        case answer
        /// The app is killed between the request and its answer.
        case kill
    }

    struct Lost: Error {
        let failure: Failure
    }

    typealias Action = () async throws -> Void

    private struct State {
        var count = 0
        var failure: (Failure, at: Int)?
        var actionAt: Int?
    }

    private let state = Mutex(State())
    /// Used by the one task that plays.
    nonisolated(unsafe) private var action: Action?

    func fail(_ failure: Failure?, at request: Int) {
        state.withLock { $0 = State(failure: failure.map { ($0, request) }) }
    }

    func meanwhile(at request: Int, _ body: @escaping Action) {
        action = body
        state.withLock { $0.actionAt = request }
    }

    func work() {
        state.withLock { $0 = State() }
        action = nil
    }

    func willSend(_ request: String) async throws {
        let (fails, acts) = state.withLock { state in
            (
                state.failure.map { $0.at == state.count && $0.0 == .request } ?? false,
                state.actionAt == state.count
            )
        }
        if acts { try await action?() }
        if fails { throw Lost(failure: .request) }
    }

    func didReceive(_ request: String) async throws {
        let failure = state.withLock { state -> Failure? in
            defer { state.count += 1 }
            guard let (failure, at) = state.failure, at == state.count, failure != .request else { return nil }
            return failure
        }
        if let failure { throw Lost(failure: failure) }
    }
}
