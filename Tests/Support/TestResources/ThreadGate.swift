import Dispatch

/// Blocks a thread inside a closure until a test opens the gate, and tells the test when the thread has reached it.
package final class ThreadGate: Sendable {
    /// Ends when the gate is reached; holds no elements.
    private let arrival = AsyncStream.makeStream(of: Never.self)
    private let opened = DispatchSemaphore(value: 0)

    package init() {}

    /// Blocks the calling thread until the gate is open.
    package func pass() {
        arrival.continuation.finish()
        opened.wait()
    }

    /// Returns when a thread has reached the gate.
    package func isReached() async {
        for await _ in arrival.stream {}
    }

    /// Lets one thread pass.
    package func open() { opened.signal() }
}
