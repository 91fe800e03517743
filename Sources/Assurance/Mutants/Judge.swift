/// A program that is built from the mutated sources, and fails where a mutant is active that it finds.
enum Judge: String, CaseIterable, Sendable {
    /// `weir-simulate`, for the server.
    case simulation
    /// The tests of the client library.
    case tests

    /// What the build is restricted to.
    var target: String {
        switch self {
        case .simulation: "Simulation"
        case .tests: "WeirClientTests"
        }
    }

    /// The arguments of `swift build`.
    var product: [String] {
        switch self {
        case .simulation: ["--product", "weir-simulate"]
        case .tests: ["--build-tests"]
        }
    }

    /// The file that is built.
    var program: String {
        switch self {
        case .simulation: "weir-simulate"
        case .tests: "weirPackageTests.xctest"
        }
    }

    /// The folder of the build, in the scratch folder.
    var folder: String {
        switch self {
        case .simulation: "build"
        case .tests: "build-tests"
        }
    }

    /// The longest run of a mutant, in seconds, unless the program is told another.
    var limit: Int {
        switch self {
        case .simulation: 600
        // Those that wait for a signal which a mutant has left out wait forever.
        case .tests: 60
        }
    }

    /// What must not fail without a mutant, before mutants with these finders are played.
    func unmutated(_ finders: [Mutant.Finder]) -> Mutant.Finder {
        switch self {
        case .simulation: .simulation(seeds: 100, steps: 30)
        case .tests:
            .tests(
                Set(finders.flatMap { if case .tests(let suites) = $0 { suites } else { [String]() } }).sorted())
        }
    }
}
