import Foundation
import Testing

@testable import Mutants

struct MutantTests {
    private static let package = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    @Test func everyMutantApplies() throws {
        let files = Dictionary(grouping: NumberedMutant.all, by: \.mutant.file)
        for (file, mutants) in files {
            let source = Self.package.appending(path: "Sources/\(file)")
            let text = try String(contentsOf: source, encoding: .utf8)
            #expect(throws: Never.self) { try MutatedSource.apply(mutants, to: text) }
        }
    }

    @Test func everySuiteThatFindsAMutantExists() throws {
        let tests = Self.package.appending(path: "Tests/Client/WeirClientTests")
        let sources = try FileManager.default.subpathsOfDirectory(atPath: tests.path).filter { $0.hasSuffix(".swift") }
            .map { try String(contentsOf: tests.appending(path: $0), encoding: .utf8) }
        let suites = Set(
            Catalog.mutants.flatMap { if case .tests(let suites) = $0.finder { suites } else { [String]() } })
        #expect(suites.count > 10)
        for suite in suites {
            let names = suite.split(separator: "/")
            let source = sources.first { $0.contains(" struct \(names[0]) {") }
            #expect(names.count == 1 ? source != nil : source?.contains("func \(names[1])(") == true, "\(suite)")
        }
    }

    @Test func mutantsHaveDifferentNames() {
        let names = Catalog.mutants.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(names.count >= 60)
    }

    private func numbered(_ mutants: Mutant...) -> [NumberedMutant] {
        mutants.enumerated().map { NumberedMutant(number: $0.offset + 1, mutant: $0.element) }
    }

    @Test func anExpressionIsChosenByNumber() throws {
        let mutants = numbered(
            .expression("one", in: "A/B.swift", "a < b", "a <= b"), .expression("two", in: "A/B.swift", "a < b", "true")
        )
        let text = try MutatedSource.apply(mutants, to: "if a < b { c() }\n")
        #expect(
            text == """
                import Mutation
                if (Mutation.isActive(1) ? (a <= b) : Mutation.isActive(2) ? (true) : (a < b)) { c() }

                """)
    }

    @Test func aStatementIsChosenByNumber() throws {
        let mutants = numbered(.statement("one", in: "A/B.swift", "d()", within: "c()\nd()"))
        let text = try MutatedSource.apply(mutants, to: "d()\nc()\nd()\n")
        #expect(text == "import Mutation\nd()\nc()\nif Mutation.isActive(1) {\n\n} else {\nd()\n}\n")
    }

    @Test func aPartOfAStringIsChosenByNumber() throws {
        let mutants = numbered(
            .client(.text, "one", in: "B.swift", " AND b", within: #""\(a) AND b""#, tests: "C"),
            .client(.text, "two", in: "B.swift", " AND b", " OR b", within: #""\(a) AND b""#, tests: "C"))
        let text = try MutatedSource.apply(mutants, to: #"let c = "\(a) AND b""#)
        #expect(
            text == """
                import Mutation
                let c = "\\(a)\\(Mutation.isActive(1) ? "" : Mutation.isActive(2) ? " OR b" : " AND b")"
                """)
    }

    @Test(arguments: [
        ("Test aRow(sql:) recorded an issue with 1 argument sql → \"a\" at A.swift:1:2: failed", Int32(1), "aRow"),
        ("Test aRow() passed after 0.1 seconds.", 1, "trap: ✘ Test aRow() passed after 0.1 seconds."),
        ("Test aRow() recorded an issue at A.swift:1:2: known", 0, "not found"),
    ]) func theTestThatHasFailedIsNamed(line: String, exit: Int32, finding: String) {
        let run = MutantRun(
            ProgramRun(output: "◇ Test other() started.\n✘ \(line)\n", ending: .exit(exit), duration: .zero))
        #expect(run.finding.description == finding)
    }

    @Test(arguments: [
        ("a + b", "its text 0 times"), ("a", "its text 2 times"),
    ]) func aMutantThatNoLongerAppliesIsReported(original: String, reason: String) {
        let mutants = numbered(.expression("one", in: "A/B.swift", original, "c"))
        let error = #expect(throws: MutatedSource.Problem.self) {
            try MutatedSource.apply(mutants, to: "a - a")
        }
        #expect(error?.description.contains(reason) == true)
        #expect(error?.description.contains("no longer applies") == true)
    }

    @Test func mutantsThatOverlapAreReported() {
        let mutants = numbered(
            .expression("one", in: "A/B.swift", "a + b", "c"), .expression("two", in: "A/B.swift", "b * d", "c"))
        let error = #expect(throws: MutatedSource.Problem.self) {
            try MutatedSource.apply(mutants, to: "a + b * d")
        }
        #expect(error?.description.contains("overlaps 'one'") == true)
    }
}
