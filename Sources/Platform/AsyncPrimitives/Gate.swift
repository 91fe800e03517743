/// Lets tasks wait until it is open; it may be closed again.
package final class Gate: Sendable {
    private let state = AwaitableState(false)

    package init() {}

    package var isOpen: Bool { state.value }

    /// Resumes every task that waits; `false` where the gate was open before.
    @discardableResult
    package func open() -> Bool {
        state.update { isOpen in
            defer { isOpen = true }
            return !isOpen
        }
    }

    package func close() { state.update { $0 = false } }

    /// Waits until the gate is open.
    ///
    /// - Throws: `CancellationError` when the task is cancelled before.
    package func wait() async throws(CancellationError) { try await state.wait { $0 } }
}
