import Synchronization
import ThreadExecutor

/// Plays seeds on several threads until all are played or one fails.
struct SeedRound: Sendable {
    struct Result: Sendable {
        /// Runs that ended.
        fileprivate(set) var count = 0
        /// Jobs of all runs.
        fileprivate(set) var jobs = 0
        /// The run that failed; that of the lowest seed where several threads found one.
        fileprivate(set) var failed: SimulationRun?
        /// The run of the highest seed.
        fileprivate(set) var last: SimulationRun?
        fileprivate var next: UInt64
        fileprivate var problem: (any Error)?
    }

    private final class State: Sendable {
        let result: Mutex<Result>
        init(_ result: Result) { self.result = Mutex(result) }
    }

    let seeds: Range<UInt64>
    var steps = Simulation.defaultSteps
    let threads: Int
    var keepsTrace = false

    /// - Parameter played: called after each run, from several threads.
    func play(_ played: @escaping @Sendable () -> Void = {}) async throws -> Result {
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
