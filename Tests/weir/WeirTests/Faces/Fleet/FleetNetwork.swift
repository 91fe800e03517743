import Synchronization

/// The network of a fleet, which fails at a chosen request, and its server.
final class FleetNetwork: DeviceClient.Network {
    enum Failure: CaseIterable {
        case request
        case answer
        /// The app is killed between the request and its answer.
        case kill
        /// A process of the server is killed while the request is on its way, and started again.
        case server
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
    /// Kills a process of the server, and returns when another one is ready in its place.
    private let restart: @Sendable () async throws -> Void
    private let restarting = Mutex<Task<Void, any Error>?>(nil)

    init(restart: @escaping @Sendable () async throws -> Void) { self.restart = restart }

    /// Whether a process of the server is being killed or started, or was since ``work()``.
    var isServerKilled: Bool { restarting.withLock { $0 != nil } }

    func fail(_ failure: Failure?, at request: Int) {
        state.withLock { $0 = State(failure: failure.map { ($0, request) }) }
    }

    func meanwhile(at request: Int, _ body: @escaping Action) {
        action = body
        state.withLock { $0.actionAt = request }
    }

    /// Ends failures, and returns when the server is ready.
    func work() async throws {
        state.withLock { $0 = State() }
        action = nil
        let task = restarting.withLock(\.self)
        try await task?.value
        restarting.withLock { $0 = nil }
    }

    func willSend(_ request: String) async throws {
        let (failure, acts) = state.withLock { state in
            (state.failure?.at == state.count ? state.failure?.0 : nil, state.actionAt == state.count)
        }
        if acts { try await action?() }
        if failure == .request { throw Lost(failure: .request) }
        if failure == .server { restarting.withLock { $0 = Task(operation: restart) } }
    }

    func didReceive(_ request: String) async throws {
        let failure = state.withLock { state -> Failure? in
            defer { state.count += 1 }
            guard let (failure, at) = state.failure, at == state.count else { return nil }
            return [.answer, .kill].contains(failure) ? failure : nil
        }
        if let failure { throw Lost(failure: failure) }
    }
}
