/// A small fault in a source file, which the simulation or tests must find.
struct Mutant: Sendable {
    enum Kind: Sendable {
        /// The original is an expression.
        case expression
        /// The original is one statement or several.
        case statement
        /// The original is a part of one line of a string literal, such as of a statement in SQL.
        case text
    }

    /// What finds it.
    enum Finder: Sendable {
        /// The simulation.
        ///
        /// - `seeds`: how many seeds, from 1, are played at most; several times as many as found it, since runs differ with every change
        ///   of the simulation.
        /// - `steps`: the actions of a run.
        case simulation(seeds: Int, steps: Int)
        /// Suites of the client's tests, each `Suite` or `Suite/test`.
        case tests([String])

        var judge: Judge {
            switch self {
            case .simulation: .simulation
            case .tests: .tests
            }
        }

        /// With another number of seeds, if one is given.
        func playing(seeds: Int?) -> Finder {
            if let seeds, case .simulation(_, let steps) = self {
                .simulation(seeds: seeds, steps: steps)
            } else {
                self
            }
        }
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
    let finder: Finder
    /// Why it is not found; `nil` for a mutant that must be found.
    let reason: String?

    private init(
        _ kind: Kind, _ name: String, _ file: String, _ original: String, _ replacement: String, _ context: String?,
        _ finder: Finder, _ reason: String?
    ) {
        (self.kind, self.name, self.file, self.finder, self.reason) = (kind, name, file, finder, reason)
        (self.original, self.replacement, self.context) = (original, replacement, context ?? original)
    }

    /// An expression with another value.
    static func expression(
        _ name: String, in file: String, _ original: String, _ replacement: String, within context: String? = nil,
        seeds: Int = 1000, steps: Int = 30, unfound reason: String? = nil
    ) -> Mutant {
        let finder = Finder.simulation(seeds: reason == nil ? seeds : 20, steps: steps)
        return Mutant(.expression, name, file, original, replacement, context, finder, reason)
    }

    /// Statements that do something else, or nothing.
    static func statement(
        _ name: String, in file: String, _ original: String, _ replacement: String = "", within context: String? = nil,
        seeds: Int = 1000, steps: Int = 30, unfound reason: String? = nil
    ) -> Mutant {
        let finder = Finder.simulation(seeds: reason == nil ? seeds : 20, steps: steps)
        return Mutant(.statement, name, file, original, replacement, context, finder, reason)
    }

    /// A fault of the client.
    ///
    /// - Parameter suites: of `WeirClientTests`, that find it.
    static func client(
        _ kind: Kind, _ name: String, in file: String, _ original: String, _ replacement: String = "",
        within context: String? = nil, tests suites: String..., unfound reason: String? = nil
    ) -> Mutant {
        Mutant(
            kind, name, "Client/WeirClient/\(file)", original, replacement, context, .tests(suites), reason)
    }

    /// The module that it is in: the second folder of the path.
    var module: String { String(file.split(separator: "/").dropFirst().first ?? "") }
}

extension Mutant.Finder: CustomStringConvertible {
    var description: String {
        switch self {
        case .simulation(let seeds, _): "\(seeds) seeds"
        case .tests(let suites): suites.joined(separator: ", ")
        }
    }
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

/// The mutants, one file for each part of the pipeline and of the client.
enum Catalog {
    static var mutants: [Mutant] {
        gateway + ingest + ordering + rules + versions + fanOut + pulls + supervision + log + capture + batches
            + applying + sessions
    }
}
