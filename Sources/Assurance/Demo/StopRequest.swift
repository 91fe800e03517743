import AsyncPrimitives

/// A signal's request to end early.
final class StopRequest: Sendable {
    private let promise = Promise<Bool>()

    func request() { promise.fulfil(true) }

    /// Waits for the request, at most so long; whether it came.
    func wait(within limit: Duration) async -> Bool {
        let end = Promise<Bool>()
        let waiting = Task { end.fulfil(await promise.value()) }
        defer { waiting.cancel() }
        return await end.value(within: limit, clock: ContinuousClock(), late: false, cancelled: true)
    }
}
