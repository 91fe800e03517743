import Testing

@testable import Benchmark

/// Statistics, reports and generated rows.
@Suite struct FigureTests {
    @Test func quantilesAreMeasuredNumbers() {
        let samples = Samples([5, 1, 4, 2, 3])
        #expect(samples.median == 3)
        #expect(samples.low == 1)
        #expect(samples.high == 5)
        #expect(samples.quantile(0.99) == 5)
        #expect(samples.quantile(0.2) == 1)
        #expect(samples.quantile(0.21) == 2)
        #expect(Samples((1...1000).map(Double.init)).quantile(0.99) == 990)
    }

    @Test func aTargetKnowsWhetherItIsMet() {
        #expect(Measure.Target.atLeast(10).isMet(by: 10))
        #expect(!Measure.Target.atLeast(10).isMet(by: 9.9))
        #expect(Measure.Target.atMost(10).isMet(by: 10))
        #expect(!Measure.Target.atMost(10).isMet(by: 10.1))
    }

    @Test func aWrongCountMakesTheReportUnsound() {
        var result = FigureResult(measures: [Measure("rate", 12.5, "/s", target: .atLeast(20), aim: 40)])
        result.checks = [Check(name: "rows", expected: 3, found: 3)]
        #expect(report(result).isSound)
        #expect(!report(result).table().contains("WRONG"))
        result.checks.append(Check(name: "rows of an owner", expected: 800, found: 799))
        #expect(!report(result).isSound)
        #expect(report(result).table().contains("WRONG: rows of an owner: 799, not 800"))
    }

    @Test func theTableMarksMissedTargets() {
        let table = report(
            FigureResult(measures: [
                Measure("rate", 12.5, "/s", target: .atLeast(20), aim: 40),
                Measure("time", 3, "ms", target: .atMost(4)),
            ])
        ).table()
        let lines = table.split(separator: "\n")
        #expect(lines.contains { $0.contains("rate") && $0.hasSuffix("target at least 20.0, aim 40.0: MISSED") })
        #expect(lines.contains { $0.contains("time") && $0.hasSuffix("target at most 4.0: met") })
    }

    @Test func ratesAndRatiosAreOfOneRepetition() {
        func repetition(_ seconds: Double, baseline: Double, cpu: Int64, brokers: Int64?) -> Repetition {
            Repetition(
                count: 1000, seconds: seconds,
                usage: Usage(
                    cpu: [cpu, cpu], loadCPU: 0, brokersCPU: brokers, databaseCPU: nil, diskReadBytes: 0, readBytes: 0,
                    othersShare: seconds / 10),
                baseline: baseline)
        }
        let repetitions = Repetitions(
            item: "change",
            all: [
                repetition(1, baseline: 4000, cpu: 1_000_000, brokers: 5_000_000),
                repetition(2, baseline: 1000, cpu: 2_000_000, brokers: nil),
                repetition(4, baseline: 1000, cpu: 3_000_000, brokers: nil),
            ])
        let measures =
            [repetitions.rate()] + repetitions.baseline("raw") + [repetitions.cpu("server", \.serverCPU)]
            + repetitions.clusterCPU()
        #expect(
            measures.map(\.name) == [
                "changes_per_second", "raw_per_second", "ratio_to_raw", "server_cpu_per_change",
                "brokers_cpu_per_change",
            ])
        #expect(measures.map(\.value) == [500, 1000, 0.25, 4, 5])
        #expect(measures[2].spread == 0.25...0.5)
        #expect(repetitions.othersShare == 0.4)
    }

    @Test func theSameSeedMakesTheSameRows() {
        var (one, other) = (Workload.Rows(seed: 3), Workload.Rows(seed: 3))
        var sizes = 0
        for _ in 0..<100 {
            var (first, second): ([UInt8], [UInt8]) = ([], [])
            Workload.write(one.next(), to: &first)
            Workload.write(other.next(), to: &second)
            #expect(first == second)
            sizes += first.count
        }
        #expect((260...300).contains(sizes / 100), "a change has about 280 bytes, not \(sizes / 100)")
    }

    @Test func idsThatGrowAreInOrder() {
        var rows = Workload.Rows(seed: 1, ids: .growing, moment: 7)
        let ids = (0..<100).map { _ in String(decoding: rows.next().id, as: UTF8.self) }
        #expect(ids == ids.sorted())
        for id in ids {
            #expect(id.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil)
        }
    }

    private func report(_ result: FigureResult) -> Report {
        var report = Report(
            version: "0", scale: .smoke, isRelease: true, processors: 2, load: "0 0 0", entries: [])
        report.entries.append(.init(name: "figure", title: "what it says", result: result))
        return report
    }
}
