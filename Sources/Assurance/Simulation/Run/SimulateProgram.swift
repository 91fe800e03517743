import Commands
import Glibc

/// The program `weir-simulate`.
@main
enum SimulateProgram {
    private static let options = [
        CommandOption("seeds", .required("N"), "How many seeds to play; 1 with --seed, else 100."),
        CommandOption("seed", .required("S"), "The first seed; by default a random one."),
        CommandOption(
            "steps", .required("N"),
            "Actions of all devices of a run; \(Simulation.defaultSteps) by default."),
        CommandOption("trace", .none, "Print every event of the last run, or of the one that failed."),
    ]

    static func main() async {
        let command = Command(
            "weir-simulate", "Play the whole pipeline in memory, with faults that a seed decides.", (),
            options: options,
            discussion: "Ends at the first seed that breaks an invariant, and prints the command that repeats it.")
        exit(await command.run(play).rawValue)
    }

    /// Plays seeds until all are played or one fails.
    private static func play(_ invocation: CommandInvocation<Void>) async throws(UsageError) -> ExitCode {
        let seed = try invocation.number("seed", in: 0...UInt64.max - 1_000_000_000)
        // Short enough to type.
        let first = seed ?? UInt64.random(in: 1...999_999_999)
        let count = try invocation.number("seeds", in: 1...1_000_000_000) ?? (seed == nil ? 100 : 1)
        let steps = try invocation.number("steps", in: 1...1_000_000) ?? Simulation.defaultSteps
        let bar = ProgressBar("simulating", total: count, unit: "seeds")
        let round = SeedRound(
            seeds: first..<first + UInt64(count), steps: steps,
            threads: max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))),
            keepsTrace: invocation.option("trace") != nil)
        do {
            let result = try await round.play { bar.advance() }
            bar.finish()
            for line in (result.failed ?? result.last)?.trace ?? [] { Output.write(line) }
            if let failure = result.failed?.failure {
                Output.write(failure.description)
                return .failure
            }
            if let last = result.last {
                Output.write(
                    "\(result.count) seeds from \(first), \(steps) steps and \(result.jobs / result.count) jobs each: every "
                        + "invariant held\nseed \(last.seed) has the hash \(last.hash)")
            }
            return .success
        } catch {
            Output.complain("\(error)")
            return .failure
        }
    }
}
