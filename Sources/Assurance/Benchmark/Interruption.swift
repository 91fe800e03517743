import Glibc
import Synchronization

/// Ends a benchmark early, without leaving servers or data behind.
package final class Interruption: Sendable {
    private struct State {
        var isRequested = false
        var servers: Set<pid_t> = []
    }

    private let state = Mutex(State())

    /// Makes one that has not been asked for.
    package init() {}

    /// Ends the servers: whatever waits for one fails, and the benchmark with it, after it has removed its data.
    package func request() {
        state.withLock { state in
            state.isRequested = true
            for server in state.servers { kill(server, SIGKILL) }
        }
    }

    /// Whether it was asked for.
    var isRequested: Bool { state.withLock { $0.isRequested } }

    /// Why a benchmark ends that was asked to.
    static let failure = BenchmarkFailure("stopped before the end; nothing is left behind")

    /// Starts a server, unless it is too late for that.
    func start<Value>(
        _ body: () throws(BenchmarkFailure) -> (process: pid_t, Value)
    ) throws(BenchmarkFailure) -> (process: pid_t, Value) {
        try state.withLock { state throws(BenchmarkFailure) in
            if state.isRequested { throw Self.failure }
            let started = try body()
            state.servers.insert(started.process)
            return started
        }
    }

    /// Forgets a server that is about to be waited for: its number may then be another process's.
    func forget(_ server: pid_t) {
        state.withLock { _ = $0.servers.remove(server) }
    }
}
