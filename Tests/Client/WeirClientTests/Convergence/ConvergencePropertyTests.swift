import Fuzzing
import Testing

/// Devices that write at random SQL converge to the server, and lose no edit but by its policy: over a network with faults, with owners
/// that are linked and revoked, apps that are killed and upgraded, and a server that is restarted and upgraded.
@Suite struct ConvergencePropertyTests {
    @Test(arguments: TestLength.seeds(20, short: 8, long: 1000)) func devicesConverge(seed: UInt64) async {
        let script = ConvergenceScript(seed: seed)
        if await ConvergenceRun.play(script).isEmpty { return }
        var smallest = script
        smallest.steps = await smallestFailing(script.steps, attempts: 300) { steps in
            var shorter = script
            shorter.steps = steps
            return await !ConvergenceRun.play(shorter).isEmpty
        }
        let failures = await ConvergenceRun.play(smallest)
        Issue.record("\(smallest)\n\(failures.joined(separator: "\n"))")
    }

    @Test func theSmallestFailingPartIsFound() async {
        let found = await smallestFailing(Array(1...100), attempts: 300) { $0.contains(17) && $0.contains(76) }
        #expect(found == [17, 76])
        // Without attempts nothing is left out.
        #expect(await smallestFailing([1, 2], attempts: 0) { _ in true } == [1, 2])
    }
}
