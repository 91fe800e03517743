/// The whole pipeline in one process and one thread, over a log and tables in memory, with everything that can go wrong
/// decided by a seed: which task goes on next, how long a message travels, which process dies and when.
///
/// The stages are those that serve people. Devices edit, upload, repeat and pull; the invariants are watched all the time.
package enum Simulation {
    /// Things that the devices of a run do, all together, where nobody says otherwise.
    package static let defaultSteps = 60

    /// Plays one seed, on the calling thread: the same seed and steps play the same run, everywhere.
    ///
    /// - Parameters:
    ///   - seed: decides everything.
    ///   - steps: how many things devices do before all comes to rest.
    ///   - keepsTrace: whether the run tells all that happened.
    /// - Throws: ``SimulationUnavailable`` when the run could not be set up.
    package static func run(seed: UInt64, steps: Int = defaultSteps, keepsTrace: Bool = false)
        throws(SimulationUnavailable) -> SimulationRun
    {
        let folder: StreamFolder
        do { folder = try StreamFolder() } catch { throw SimulationUnavailable(description: error.description) }
        let scheduler = Scheduler(dice: SeededGenerator(seed: seed))
        if keepsTrace { scheduler.trace.kept = .max }
        var run = SimulationRun(seed: seed, steps: steps)
        scheduler.own {
            let world = World(scheduler, actions: steps, folder: folder)
            defer { folder.remove(partitions: world.scenario.partitions) }
            _ = Task {
                await world.play()
                world.isOver = true
            }
            do {
                try scheduler.run(maximumSteps: 5_000_000, until: { world.isOver }) { try world.next() }
                try world.requireOrder()
            } catch {
                run.failure = SimulationFailure(
                    reason: describe(error), seed: seed, steps: steps, trace: scheduler.trace.tail(120))
                world.fail(.progress, "given up")
                // What is left unwinds, so that the next run finds nothing of it; what does not is given up with the run.
                try? scheduler.run(maximumSteps: 500_000, until: { world.isOver }) {}
            }
        }
        run.jobs = scheduler.steps
        run.hash = scheduler.trace.hash
        if keepsTrace { run.trace = scheduler.trace.tail(.max) }
        return run
    }

    private static func describe(_ error: any Error) -> String {
        switch error {
        case Scheduler.Ending.nothingToDo: "nothing can go on, and the run is not over: something waits for ever"
        case Scheduler.Ending.endless: "the run does not end: something goes round in circles"
        default: "\(error)"
        }
    }
}

/// What a seed came to.
package struct SimulationRun: Sendable {
    /// The seed.
    package let seed: UInt64
    /// How many things devices did.
    package let steps: Int
    /// How many jobs ran.
    package internal(set) var jobs = 0
    /// A hash of every choice and of all that happened: equal for two runs that were the same.
    package internal(set) var hash: UInt64 = 0
    /// What happened, line by line, where it was asked for.
    package internal(set) var trace: [String] = []
    /// The invariant that did not hold.
    package internal(set) var failure: SimulationFailure?

    init(seed: UInt64, steps: Int) {
        self.seed = seed
        self.steps = steps
    }
}

/// An invariant that did not hold, and how to see it again.
package struct SimulationFailure: Sendable, CustomStringConvertible {
    /// The invariant and what was found.
    package let reason: String
    let seed: UInt64
    let steps: Int
    /// The newest lines of what happened.
    package let trace: [String]

    /// The command that plays the run again.
    package var command: String { "weir-simulate --seed \(seed) --steps \(steps)" }

    /// The end of the trace, the reason and the command.
    package var description: String {
        """
        \(trace.joined(separator: "\n"))

        seed \(seed): \(reason)
        again: \(command)
        """
    }
}

/// A run could not be set up: the machine has no place for its files.
package struct SimulationUnavailable: Error, Sendable, CustomStringConvertible {
    /// The reason.
    package let description: String
}
