import Foundation

/// The simulation with one mutant.
struct MutantRun: Sendable {
    enum Finding: Sendable, Equatable {
        /// Every invariant held with every seed.
        case none
        /// A seed, and which invariant it broke.
        case invariant(seed: UInt64, String)
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

    /// Plays seeds from 1 on with a mutant; with number 0 none is active.
    static func play(
        _ number: Int, seeds: Int, steps: Int, with tree: MutatedTree, limit: Duration
    ) async throws -> MutantRun {
        MutantRun(
            try await ProgramRun.run(
                tree.program.path, ["--seed", "1", "--seeds", "\(seeds)", "--steps", "\(steps)"],
                environment: ["WEIR_MUTANT": "\(number)"], limit: limit))
    }
}

extension MutantRun.Finding: CustomStringConvertible {
    var description: String {
        switch self {
        case .none: "not found"
        case .invariant(let seed, let reason): "seed \(seed): \(reason.prefix(160))"
        case .trap(let text): "trap: \(text.prefix(160))"
        case .endless: "does not end"
        }
    }
}
