import Commands
import Foundation

/// The program `weir-mutants`.
@main
enum MutantsProgram {
    private static let options = [
        CommandOption("only", .required("TEXT"), "Only the mutants whose name or file contains this text."),
        CommandOption("by", .required("WHAT"), "Only the mutants that these find: simulation or tests."),
        CommandOption(
            "seeds", .required("N"),
            "As many seeds for each mutant that the simulation finds, instead of its own number."),
        CommandOption("every", .required("N"), "Only every N-th mutant."),
        CommandOption("scratch", .required("FOLDER"), "Where sources are copied and built; .build-mutants by default."),
        CommandOption(
            "limit", .required("SECONDS"),
            "The longest run of a mutant; by default 600 for the simulation, 60 for tests."),
        CommandOption(
            "optimized", .none, "Build the simulation with optimisation: for all mutants that takes less time."),
        CommandOption("list", .none, "List the mutants, and check that each applies."),
    ]

    static func main() async {
        let command = Command(
            "weir-mutants",
            "Put small faults into the sources, one at a time, and see whether the simulation or tests find them.",
            (), options: options,
            discussion: "Runs in the folder of the package. Ends with an error if a mutant is not found.")
        exit(await command.run(run).rawValue)
    }

    private static func run(_ invocation: CommandInvocation<Void>) async throws(UsageError) -> ExitCode {
        let text = invocation.option("only")?.value
        let every = try invocation.number("every", in: 1...1_000_000) ?? 1
        let seeds = try invocation.number("seeds", in: 1...1_000_000)
        let limit = try invocation.number("limit", in: 1...1_000_000)
        let judge = try invocation.option("by")?.value.map { text throws(UsageError) in
            guard let judge = Judge(rawValue: text) else {
                throw UsageError("--by is simulation or tests, not \(text)")
            }
            return judge
        }
        let chosen = NumberedMutant.all.filter { numbered in
            (numbered.number - 1).isMultiple(of: every)
                && text.map { numbered.mutant.name.contains($0) || numbered.mutant.file.contains($0) } ?? true
                && judge.map { numbered.mutant.finder.judge == $0 } ?? true
        }
        guard !chosen.isEmpty else { throw UsageError("no mutant has \(text ?? "") in its name or file") }
        let package = URL(filePath: FileManager.default.currentDirectoryPath, directoryHint: .isDirectory)
        let scratch = invocation.option("scratch")?.value ?? ".build-mutants"
        let tree = MutatedTree(
            package: package, scratch: URL(filePath: scratch, relativeTo: package).absoluteURL,
            isOptimized: invocation.option("optimized") != nil)
        let run = Run(tree: tree, seeds: seeds, limit: limit.map { .seconds($0) })
        do {
            try tree.write(NumberedMutant.all)
            if invocation.option("list") != nil {
                for numbered in chosen { Output.write(line(numbered, "")) }
                return .success
            }
            var isComplete = true
            for judge in Judge.allCases {
                let mutants = chosen.filter { $0.mutant.finder.judge == judge }
                if mutants.isEmpty { continue }
                Output.complain("building \(judge.program) of the mutated sources in \(scratch)")
                let start = ContinuousClock.now
                try await tree.build(judge)
                Output.complain("built in \((ContinuousClock.now - start).components.seconds) s")
                if try await !run.play(mutants, by: judge) { isComplete = false }
            }
            return isComplete ? .success : .failure
        } catch {
            Output.complain("\(error)")
            return .failure
        }
    }

    /// How mutants are played.
    private struct Run {
        let tree: MutatedTree
        /// In place of those that mutants state.
        let seeds: Int?
        let limit: Duration?

        /// Plays mutants of one judge, as many at a time as there are processors.
        ///
        /// - Returns: whether all were found that must be, and nothing fails without a mutant.
        func play(_ mutants: [NumberedMutant], by judge: Judge) async throws -> Bool {
            let start = ContinuousClock.now
            var rest = mutants[...]
            var missed: [NumberedMutant] = []
            var surprises: [NumberedMutant] = []
            var isSound = true
            try await withThrowingTaskGroup(of: (NumberedMutant?, MutantRun).self) { group in
                // All suites together take longer than those of a mutant.
                let unmutated = judge.unmutated(mutants.map(\.mutant.finder))
                group.addTask {
                    (nil, try await MutantRun.play(0, by: unmutated, with: tree, limit: limit ?? .seconds(1800)))
                }
                func playNext() {
                    guard let numbered = rest.popFirst() else { return }
                    let finder = numbered.mutant.finder.playing(seeds: seeds)
                    group.addTask {
                        (numbered, try await MutantRun.play(numbered.number, by: finder, with: tree, limit: limit))
                    }
                }
                for _ in 1..<ProcessInfo.processInfo.activeProcessorCount { playNext() }
                while let (numbered, run) = try await group.next() {
                    playNext()
                    guard let numbered else {
                        if run.finding == .none { continue }
                        Output.write("without a mutant, \(run.finding)")
                        // What fails without a mutant finds each of them.
                        (isSound, rest) = (false, [])
                        continue
                    }
                    Output.write(line(numbered, "\(run.finding) (\(run.duration.components.seconds) s)"))
                    if run.finding == .none, numbered.mutant.reason == nil { missed.append(numbered) }
                    if run.finding != .none, numbered.mutant.reason != nil { surprises.append(numbered) }
                }
            }
            guard isSound else { return false }
            let known = mutants.count { $0.mutant.reason != nil } - surprises.count
            let duration = (ContinuousClock.now - start).components.seconds
            Output.write(
                "\(mutants.count - missed.count - known) of \(mutants.count) mutants found, \(known) known as not found, in "
                    + "\(duration) s; run one with WEIR_MUTANT=NUMBER \(tree.program(judge).path)")
            for numbered in surprises { Output.write("found, though it is said not to be: \(line(numbered, ""))") }
            for numbered in missed {
                Output.write("NOT FOUND: \(line(numbered, "by \(numbered.mutant.finder.playing(seeds: seeds))"))")
            }
            return missed.isEmpty
        }
    }

    private static func line(_ numbered: NumberedMutant, _ rest: String) -> String {
        "\(numbered.number) \(numbered.mutant.file.split(separator: "/").last ?? ""), \(numbered.mutant.name)"
            + (rest.isEmpty ? "" : ": \(rest)")
    }
}
