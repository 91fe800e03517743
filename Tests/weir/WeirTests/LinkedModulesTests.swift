import Foundation
import Testing

/// The server holds what serves; simulation and benchmark are programs of their own.
@Suite struct LinkedModulesTests {
    /// Mangled names of Swift begin with the length and the name of their module.
    private static let marks = [
        "$s10Simulation", "$s9Benchmark", "$s15MemoryChangeLog", "$s17MemoryRecordStore", "job_capture_begin",
    ]

    @Test func theServerLinksNeitherSimulationNorBenchmarkNorAdaptersInMemory() throws {
        let server = try Data(contentsOf: TestedProgram.weir.executable(), options: .alwaysMapped)
        #expect(server.range(of: Data("$s6Ingest".utf8)) != nil, "the program has no symbols to look at")
        for mark in Self.marks { #expect(server.range(of: Data(mark.utf8)) == nil, "\(mark)") }
    }

    @Test(arguments: [(TestedProgram.simulate, marks.filter { $0 != "$s9Benchmark" }), (.bench, ["$s9Benchmark"])])
    func theProgramsBesideItLinkThem(program: TestedProgram, marks: [String]) throws {
        let bytes = try Data(contentsOf: program.executable(), options: .alwaysMapped)
        for mark in marks { #expect(bytes.range(of: Data(mark.utf8)) != nil, "\(program): \(mark)") }
    }
}
