import Commands
import Foundation
import LoadTools
import Testing

@testable import Benchmark

/// An interrupted benchmark leaves neither processes nor files.
@Suite struct InterruptionTests {
    @Test func anInterruptionKillsRunningServers() throws {
        let interruption = Interruption()
        let (process, output) = try interruption.start { () throws(LoadFailure) in
            try ChildProcess.start(["sleep", "1000"], reading: STDOUT_FILENO)
        }
        defer { close(output) }
        interruption.request()
        #expect(ChildProcess.wait(for: process) == SIGKILL)
    }

    @Test func noServerIsStartedAfterAnInterruption() async throws {
        let interruption = Interruption()
        interruption.request()
        let folder = NSTemporaryDirectory() + "bench-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: folder) } }
        let options = Benchmark.Options(figures: ["soak"], folder: folder, scale: .smoke)
        await #expect(throws: LoadFailure.self) {
            try await Benchmark.run(options, output: .init(isTerminal: false) { _ in }, interruption: interruption)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
    }
}
