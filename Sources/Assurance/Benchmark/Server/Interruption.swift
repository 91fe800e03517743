import Glibc
import LoadTools
import Synchronization

/// Ends a benchmark early, without leaving processes or data.
final class Interruption: Sendable {
    private struct State {
        var isRequested = false
        var servers: Set<pid_t> = []
    }

    private let state = Mutex(State())

    /// Kills the servers: what waits for one fails, and the benchmark ends after it has removed its data.
    func request() {
        state.withLock { state in
            state.isRequested = true
            for server in state.servers { kill(server, SIGKILL) }
        }
    }

    var isRequested: Bool { state.withLock { $0.isRequested } }

    static let failure = LoadFailure("interrupted; servers and temporary data are removed")

    /// Starts a server, unless the benchmark was interrupted.
    func start<Value>(
        _ body: () throws(LoadFailure) -> (process: pid_t, Value)
    ) throws(LoadFailure) -> (process: pid_t, Value) {
        try state.withLock { state throws(LoadFailure) in
            if state.isRequested { throw Self.failure }
            let started = try body()
            state.servers.insert(started.process)
            return started
        }
    }

    /// Forgets a server before its end is waited for: after that its id may be another process's.
    func forget(_ server: pid_t) {
        state.withLock { _ = $0.servers.remove(server) }
    }
}
