import Foundation

/// The simulation, or tests of the client, with one mutant.
struct MutantRun: Sendable {
    enum Finding: Sendable, Equatable {
        /// Every invariant held with every seed, or every test passed.
        case none
        /// A seed, and which invariant it broke.
        case invariant(seed: UInt64, String)
        /// The first test that has failed.
        case test(String)
        /// The program trapped.
        case trap(String)
        /// The program did not end within its time.
        case endless
    }

    let finding: Finding
    let duration: Duration

    init(_ run: ProgramRun) {
        duration = run.duration
        let lines = run.output.split(separator: "\n")
        switch run.ending {
        case .exit(0): finding = .none
        case .late: finding = .endless
        case .exit:
            if let test = lines.lazy.compactMap(Self.failedTest).first {
                finding = .test(test)
                return
            }
            let line = lines.last { $0.hasPrefix("seed ") } ?? ""
            let parts = line.dropFirst("seed ".count).split(separator: ":", maxSplits: 1)
            if parts.count == 2, let seed = UInt64(parts[0]) {
                finding = .invariant(seed: seed, String(parts[1].dropFirst()))
            } else {
                finding = .trap(lines.last.map(String.init) ?? "no output")
            }
        case .signal(let signal):
            let fatal = lines.first { $0.contains("Fatal error") || $0.contains("atal error") }
            finding = .trap(fatal.map(String.init) ?? "signal \(signal)")
        }
    }

    /// The test that a line of the output of tests is about, if it has failed.
    private static func failedTest(_ line: Substring) -> String? {
        guard let match = line.firstMatch(of: /\bTest (\w+)\(.* recorded an issue/) else { return nil }
        return String(match.1)
    }

    /// Runs what finds mutants with one of them; with number 0 none is active.
    ///
    /// - Parameter limit: the longest time; that of the judge by default.
    static func play(
        _ number: Int, by finder: Mutant.Finder, with tree: MutatedTree, limit: Duration?
    ) async throws -> MutantRun {
        let arguments: [String]
        switch finder {
        case .simulation(let seeds, let steps):
            arguments = ["--seed", "1", "--seeds", "\(seeds)", "--steps", "\(steps)"]
        case .tests(let suites):
            arguments = [
                "--testing-library", "swift-testing", "--no-parallel", "--filter",
                "^WeirClientTests\\.(\(suites.joined(separator: "|")))([/(]|$)",
            ]
        }
        return MutantRun(
            try await ProgramRun.run(
                tree.program(finder.judge).path, arguments,
                // As many seeds however long other tests run.
                environment: ["WEIR_MUTANT": "\(number)", "WEIR_TEST_LENGTH": "short"],
                limit: limit ?? .seconds(finder.judge.limit)))
    }
}

extension MutantRun.Finding: CustomStringConvertible {
    var description: String {
        switch self {
        case .none: "not found"
        case .invariant(let seed, let reason): "seed \(seed): \(reason.prefix(160))"
        case .test(let name): name
        case .trap(let text): "trap: \(text.prefix(160))"
        case .endless: "does not end"
        }
    }
}
