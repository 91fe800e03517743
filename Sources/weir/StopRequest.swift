import Synchronization

/// A wish that the process end, which may come before there is anything to end.
final class StopRequest: Sendable {
    private struct State {
        var reason: String?
        var handler: (@Sendable (String) -> Void)?
    }

    private let state = Mutex(State())

    /// Asks; the first time counts.
    func ask(reason: String) {
        let handler = state.withLock { state -> (@Sendable (String) -> Void)? in
            guard state.reason == nil else { return nil }
            state.reason = reason
            return state.handler
        }
        handler?(reason)
    }

    /// Has `handler` end what runs from now on; called at once where that was asked for already.
    func handle(_ handler: @escaping @Sendable (String) -> Void) {
        let reason = state.withLock { state in
            state.handler = handler
            return state.reason
        }
        if let reason { handler(reason) }
    }
}
