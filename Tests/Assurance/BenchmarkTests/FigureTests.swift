import Testing

@testable import Benchmark

/// How numbers are made from what was measured.
@Suite struct FigureTests {
    @Test func quantilesAreNumbersThatWereMeasured() {
        let samples = Samples([5, 1, 4, 2, 3])
        #expect(samples.median == 3)
        #expect(samples.low == 1)
        #expect(samples.high == 5)
        #expect(samples.quantile(0.99) == 5)
        #expect(samples.quantile(0.2) == 1)
        #expect(samples.quantile(0.21) == 2)
        #expect(Samples((1...1000).map(Double.init)).quantile(0.99) == 990)
    }

    @Test func aTargetSaysWhetherItIsMet() {
        #expect(Measure.Target.atLeast(10).isMet(by: 10))
        #expect(!Measure.Target.atLeast(10).isMet(by: 9.9))
        #expect(Measure.Target.atMost(10).isMet(by: 10))
        #expect(!Measure.Target.atMost(10).isMet(by: 10.1))
    }

    @Test func aWrongCountMakesTheReportUnsound() {
        var result = FigureResult(measures: [Measure("rate", 12.5, "/s", target: .atLeast(20), aim: 40)])
        result.checks = [("rows", 3, 3)]
        #expect(report(result).isSound)
        #expect(!report(result).table().contains("WRONG"))
        result.checks.append(("rows of an owner", 800, 799))
        #expect(!report(result).isSound)
        #expect(report(result).table().contains("WRONG: rows of an owner: 799, not 800"))
    }

    @Test func theTableSaysWhichTargetsWereMissed() {
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

    @Test func aSampleCountsForTheInnermostStage() {
        var counter = HopSampler.Counter()
        let text = """
            oot.default-qos
            \t  1d789d swift_retain
            \t  1e9309 $s9SyncModel8OpaqueIDPAAE4hash
            \t  1e5257 $s8Ordering15PartitionWorkerC5writeyyYaKFTY4_
            \t  71e60 $s6Ingest9AdmissionV5admit

            weir-fan-w1
            \t  f85fb sqlite3VdbeExec
            \t  1e5257 $s8Ordering15PartitionWorkerC5writeyyYaKFTY4_

            MHD-worker

            oot.default-qos
            \t  1d789d malloc
            """
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            counter.take(Array(line.utf8)[...])
        }
        counter.endSample()
        #expect(counter.samples == [.ordering: 1, .fanOut: 1, .http: 1, .other: 1])
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
