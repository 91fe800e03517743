/// One life of a worker process: what it does reaches the world until it is killed.
///
/// A process that is killed goes on to unwind, but no port lets anything of it through any more, and no answer of it
/// reaches anybody: to the world it stopped between two steps.
final class SimulatedProcess: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    let name: String
    private(set) var isAlive = true
    /// Whether the others think that it is gone, though it goes on.
    var isStale = false
    private var work: Task<Void, Never>?
    private var deaths: [() -> Void] = []

    init(_ name: String) { self.name = name }

    /// Sets it to work.
    func start(_ work: @escaping @Sendable () async -> Void) { self.work = Task { await work() } }

    /// Calls the closure when the process is killed.
    func onDeath(_ body: @escaping () -> Void) { deaths.append(body) }

    /// Stops it between two steps.
    func kill() {
        guard isAlive else { return }
        isAlive = false
        work?.cancel()
        for death in deaths { death() }
        deaths = []
    }

    /// Asks it to end in order.
    func stop() { work?.cancel() }

    /// Waits until nothing of it runs any more.
    func ended() async { await work?.value }
}
