import Synchronization
import ThreadExecutor

/// Many seeds, played on several threads at a time, until all are played or one fails.
package struct SeedRound: Sendable {
    /// What a round came to.
    package struct Result: Sendable {
        /// How many runs ended.
        package fileprivate(set) var count = 0
        /// How many jobs they ran, all together.
        package fileprivate(set) var jobs = 0
        /// The run that failed; that of the lowest seed, if threads found more than one.
        package fileprivate(set) var failed: SimulationRun?
        /// The run of the highest seed.
        package fileprivate(set) var last: SimulationRun?
        fileprivate var next: UInt64
        fileprivate var problem: (any Error)?
    }

    private final class State: Sendable {
        let result: Mutex<Result>
        init(_ result: Result) { self.result = Mutex(result) }
    }

    private let seeds: Range<UInt64>
    private let steps: Int
    private let threads: Int
    private let keepsTrace: Bool

    /// Makes a round.
    ///
    /// - Parameters:
    ///   - seeds: each is played once.
    ///   - steps: how many things the devices of a run do.
    ///   - threads: how many runs go on at a time, each on a thread of its own.
    ///   - keepsTrace: whether the runs tell all that happened.
    package init(_ seeds: Range<UInt64>, steps: Int = Simulation.defaultSteps, threads: Int, keepsTrace: Bool = false) {
        self.seeds = seeds
        self.steps = steps
        self.threads = threads
        self.keepsTrace = keepsTrace
    }

    /// Plays.
    ///
    /// - Parameter played: called after each run, from several threads.
    /// - Throws: ``SimulationUnavailable``, `ThreadStartError`.
    package func play(_ played: @escaping @Sendable () -> Void = {}) async throws -> Result {
        let state = State(Result(next: seeds.lowerBound))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<max(1, min(threads, seeds.count)) {
                group.addTask { await play(thread: number, state, played) }
            }
        }
        let ended = state.result.withLock { $0 }
        if let problem = ended.problem { throw problem }
        return ended
    }

    private func play(thread number: Int, _ state: State, _ played: @Sendable () -> Void) async {
        do {
            let thread = try DedicatedThread(name: "weir-simulate-\(number)")
            while let seed = state.result.withLock({ next(&$0) }) {
                let ended = await thread.run {
                    Swift.Result { () throws(SimulationUnavailable) in
                        try Simulation.run(seed: seed, steps: steps, keepsTrace: keepsTrace)
                    }
                }
                state.result.withLock { add(ended, to: &$0) }
                played()
            }
            await thread.close()
        } catch {
            state.result.withLock { $0.problem = error }
        }
    }

    private func next(_ result: inout Result) -> UInt64? {
        guard result.failed == nil, result.problem == nil, result.next < seeds.upperBound else { return nil }
        defer { result.next += 1 }
        return result.next
    }

    private func add(_ ended: Swift.Result<SimulationRun, SimulationUnavailable>, to result: inout Result) {
        switch ended {
        case .failure(let problem): result.problem = problem
        case .success(let run):
            result.count += 1
            result.jobs += run.jobs
            if run.failure != nil, result.failed.map({ run.seed < $0.seed }) ?? true { result.failed = run }
            if result.last.map({ $0.seed < run.seed }) ?? true { result.last = run }
        }
    }
}
