import DeviceModel

/// The whole pipeline in one thread, over a log and tables in memory.
///
/// A seed decides which task runs next, how long a request takes and which process dies when. The stages are those of the server. Devices edit, upload, repeat and pull; the invariants are checked at every step.
enum Simulation {
    /// Actions of all devices of a run.
    static let defaultSteps = 60

    /// Plays one seed on the calling thread; the same seed and steps play the same run on every machine.
    ///
    /// - Parameters:
    ///   - steps: actions of all devices before the pipeline must come to rest.
    ///   - keepsTrace: whether the result has the whole trace.
    static func run(seed: UInt64, steps: Int = defaultSteps, keepsTrace: Bool = false)
        throws(SimulationUnavailable) -> SimulationRun
    {
        let folder: StreamFolder
        do { folder = try StreamFolder() } catch { throw SimulationUnavailable(description: error.description) }
        let scheduler = Scheduler(random: SeededGenerator(seed: seed))
        if keepsTrace { scheduler.trace.kept = .max }
        var run = SimulationRun(seed: seed, steps: steps)
        scheduler.capturing {
            let world = World(scheduler, actions: steps, folder: folder)
            defer { folder.remove(partitions: world.scenario.partitions) }
            _ = Task {
                await world.play()
                world.isOver = true
            }
            do {
                try scheduler.run(maximumSteps: 100_000 + 10_000 * steps, until: { world.isOver }) {
                    try world.beforeStep()
                }
                try world.requireInvariants()
            } catch {
                run.failure = SimulationFailure(
                    reason: describe(error), seed: seed, steps: steps, trace: scheduler.trace.tail(120))
                world.fail(.progress, "the run was ended")
                // The remaining tasks unwind before the next run starts; those that do not are abandoned.
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
        case Scheduler.Ending.nothingToDo:
            "no task can run and the run is not over: a task waits for something that never happens"
        case Scheduler.Ending.endless: "the run does not end: it exceeds the maximum number of steps"
        default: "\(error)"
        }
    }
}

/// The result of one seed.
struct SimulationRun: Sendable {
    let seed: UInt64
    let steps: Int
    /// Jobs of Swift tasks and dedicated threads that ran.
    var jobs = 0
    /// A hash of every choice and every line of the trace; equal for equal runs.
    var hash: UInt64 = 0
    /// Empty unless it was asked for.
    var trace: [String] = []
    var failure: SimulationFailure?
}

/// An invariant that did not hold, and how to repeat the run.
struct SimulationFailure: Sendable, CustomStringConvertible {
    let reason: String
    let seed: UInt64
    let steps: Int
    /// The end of the trace.
    let trace: [String]

    var description: String {
        """
        \(trace.joined(separator: "\n"))

        seed \(seed): \(reason)
        repeat with: weir-simulate --seed \(seed) --steps \(steps)
        """
    }
}

/// The folder for a run's files could not be made.
struct SimulationUnavailable: Error, Sendable, CustomStringConvertible {
    let description: String
}

/// An invariant that did not hold.
struct Violation: Error, CustomStringConvertible {
    /// The invariants that a run checks (docs/architecture.md).
    enum Invariant: String {
        case nothingLost = "I1, nothing acknowledged is lost"
        case appliedOnce = "I2, applied once"
        case oneOrder = "I3, one order an owner"
        case sameBytes = "I4, replay gives the same bytes"
        case publishThenWrite = "I5, publish, then write"
        case exactPull = "I6, a pull is exact"
        case drainedEqual = "I7, a drained device equals the server"
        case deletesStay = "I8, deletes stay deleted"
        case ownersApart = "I9, owners are apart"
        case rules = "the rules for one change"
        case limits = "I10, limits and their answers"
        case progress = "every request is answered in the end"
    }

    let invariant: Invariant
    let message: String

    var description: String { "\(invariant.rawValue): \(message)" }
}

/// The events of a run: a hash of all, and the newest as text.
struct Trace {
    /// FNV-1a of every choice and line.
    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    private var lines: [String] = []
    private var oldest = 0

    /// The number of newest lines that are kept.
    var kept = 400

    mutating func mix(_ number: Int) {
        hash = (hash ^ UInt64(truncatingIfNeeded: number)) &* 0x100_0000_01B3
    }

    mutating func record(_ line: String) {
        for byte in line.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        if lines.count < kept {
            lines.append(line)
        } else {
            lines[oldest] = line
            oldest = (oldest + 1) % kept
        }
    }

    /// The newest lines, oldest first.
    func tail(_ count: Int) -> [String] { Array((lines[oldest...] + lines[..<oldest]).suffix(count)) }
}
