/// A small fault in a source file, which the simulation must find.
struct Mutant: Sendable {
    enum Kind: Sendable {
        /// The original is an expression.
        case expression
        /// The original is one statement or several.
        case statement
    }

    /// What is wrong, in a few words; unique.
    let name: String
    /// Below `Sources`.
    let file: String
    /// Occurs once in the file, and contains the original once.
    let context: String
    let original: String
    /// Empty for statements that are left out.
    let replacement: String
    let kind: Kind
    /// How many seeds, from 1, are played at most; several times as many as found it, since runs differ with every change of the
    /// simulation.
    let seeds: Int
    /// The actions of a run.
    let steps: Int
    /// Why the simulation does not find it; `nil` for a mutant that it must find.
    let reason: String?

    /// An expression with another value.
    static func expression(
        _ name: String, in file: String, _ original: String, _ replacement: String, within context: String? = nil,
        seeds: Int = 1000, steps: Int = 30, unfound reason: String? = nil
    ) -> Mutant {
        Mutant(
            name: name, file: file, context: context ?? original, original: original, replacement: replacement,
            kind: .expression, seeds: reason == nil ? seeds : 20, steps: steps, reason: reason)
    }

    /// Statements that do something else, or nothing.
    static func statement(
        _ name: String, in file: String, _ original: String, _ replacement: String = "", within context: String? = nil,
        seeds: Int = 1000, steps: Int = 30, unfound reason: String? = nil
    ) -> Mutant {
        Mutant(
            name: name, file: file, context: context ?? original, original: original, replacement: replacement,
            kind: .statement, seeds: reason == nil ? seeds : 20, steps: steps, reason: reason)
    }

    /// The module that it is in: the second folder of the path.
    var module: String { String(file.split(separator: "/").dropFirst().first ?? "") }
}

/// A mutant with its number, by which it is activated.
struct NumberedMutant: Sendable {
    let number: Int
    let mutant: Mutant

    /// All mutants, from number 1 on.
    static let all: [NumberedMutant] = Catalog.mutants.enumerated().map {
        NumberedMutant(number: $0.offset + 1, mutant: $0.element)
    }
}

/// The mutants, one file for each part of the pipeline.
enum Catalog {
    static var mutants: [Mutant] { gateway + ingest + ordering + rules + fanOut + pulls + supervision + log }
}
