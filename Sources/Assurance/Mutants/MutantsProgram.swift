import Commands
import Foundation

/// The program `weir-mutants`.
@main
enum MutantsProgram {
    private static let options = [
        CommandOption("only", .required("TEXT"), "Only the mutants whose name or file contains this text."),
        CommandOption("seeds", .required("N"), "As many seeds for each mutant, instead of its own number."),
        CommandOption("every", .required("N"), "Only every N-th mutant."),
        CommandOption("scratch", .required("FOLDER"), "Where sources are copied and built; .build-mutants by default."),
        CommandOption("limit", .required("SECONDS"), "The longest run of a mutant; 600 by default."),
        CommandOption("list", .none, "List the mutants, and check that each applies."),
    ]

    static func main() async {
        let command = Command(
            "weir-mutants",
            "Put small faults into the sources, one at a time, and see whether the simulation finds them.",
            (), options: options,
            discussion: "Runs in the folder of the package. Ends with an error if a mutant is not found.")
        exit(await command.run(run).rawValue)
    }

    private static func run(_ invocation: CommandInvocation<Void>) async throws(UsageError) -> ExitCode {
        let text = invocation.option("only")?.value
        let every = try invocation.number("every", in: 1...1_000_000) ?? 1
        let seeds = try invocation.number("seeds", in: 1...1_000_000)
        let limit = try invocation.number("limit", in: 1...1_000_000) ?? 600
        let chosen = NumberedMutant.all.filter { numbered in
            (numbered.number - 1).isMultiple(of: every)
                && text.map { numbered.mutant.name.contains($0) || numbered.mutant.file.contains($0) } ?? true
        }
        guard !chosen.isEmpty else { throw UsageError("no mutant has \(text ?? "") in its name or file") }
        let package = URL(filePath: FileManager.default.currentDirectoryPath, directoryHint: .isDirectory)
        let scratch = invocation.option("scratch")?.value ?? ".build-mutants"
        let tree = MutatedTree(package: package, scratch: URL(filePath: scratch, relativeTo: package).absoluteURL)
        do {
            try tree.write(NumberedMutant.all)
            if invocation.option("list") != nil {
                for numbered in chosen { Output.write(line(numbered, "")) }
                return .success
            }
            Output.complain("building the mutated sources in \(scratch)")
            let start = ContinuousClock.now
            try await tree.build()
            Output.complain("built in \((ContinuousClock.now - start).components.seconds) s")
            return try await play(chosen, seeds: seeds, with: tree, limit: .seconds(limit)) ? .success : .failure
        } catch {
            Output.complain("\(error)")
            return .failure
        }
    }

    /// Plays all mutants.
    ///
    /// - Returns: whether all were found that must be, and no seed fails without a mutant.
    private static func play(
        _ mutants: [NumberedMutant], seeds: Int?, with tree: MutatedTree, limit: Duration
    ) async throws -> Bool {
        let start = ContinuousClock.now
        let unmutated = try await MutantRun.play(0, seeds: 100, steps: 30, with: tree, limit: limit)
        guard unmutated.finding == .none else {
            Output.write("without a mutant, \(unmutated.finding)")
            return false
        }
        var missed: [NumberedMutant] = []
        var surprises: [NumberedMutant] = []
        for numbered in mutants {
            let mutant = numbered.mutant
            let run = try await MutantRun.play(
                numbered.number, seeds: seeds ?? mutant.seeds, steps: mutant.steps, with: tree, limit: limit)
            Output.write(line(numbered, "\(run.finding) (\(run.duration.components.seconds) s)"))
            if run.finding == .none, mutant.reason == nil { missed.append(numbered) }
            if run.finding != .none, mutant.reason != nil { surprises.append(numbered) }
        }
        let known = mutants.count { $0.mutant.reason != nil } - surprises.count
        Output.write(
            "\(mutants.count - missed.count - known) of \(mutants.count) mutants found, \(known) known as not found, in "
                + "\((ContinuousClock.now - start).components.seconds) s; run one with WEIR_MUTANT=NUMBER \(tree.program.path)"
        )
        for numbered in surprises { Output.write("found, though it is said not to be: \(line(numbered, ""))") }
        for numbered in missed {
            Output.write("NOT FOUND: \(line(numbered, "within \(seeds ?? numbered.mutant.seeds) seeds"))")
        }
        return missed.isEmpty
    }

    private static func line(_ numbered: NumberedMutant, _ rest: String) -> String {
        "\(numbered.number) \(numbered.mutant.file.split(separator: "/").last ?? ""), \(numbered.mutant.name)"
            + (rest.isEmpty ? "" : ": \(rest)")
    }
}
