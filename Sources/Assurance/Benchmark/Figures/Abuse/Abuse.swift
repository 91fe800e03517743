import Commands
import LoadTools

/// What the abuse of one owner costs the devices of others, and the server's memory.
struct Abuse: Figure {
    let name = "abuse"
    let title = "two devices each of two owners, alone and during the abuse of another owner on 200 connections"

    /// The owners whose devices are measured, by their partition: not the abuser's, and the abuser's.
    private static let partitions = ["other", "same"]

    func measure(_ bench: Bench) async throws -> FigureResult {
        let names = Owners.spread(Owners.partitions + 1)
        let owner = AbusiveOwner(name: names[0], scale: bench.scale)
        let total = 2 * bench.scale.repetitions
        let all = try await bench.showing(name, total: total, unit: "phases") { bar in
            try await bench.repeating(warmUps: 0) { number in
                try await bench.withAbusedServer("\(name)-\(number)") { server in
                    var run = AbuseRun(
                        devices: [names[1], names[Owners.partitions]].map(WellBehavedDevices.init(owner:)),
                        server: server, seconds: bench.abuseSeconds)
                    return try await run.measure(owner, bench.abuses, bar)
                }
            }
        }
        return result(all, seconds: Double(bench.abuseSeconds))
    }

    private func result(_ all: [AbuseRun.Found], seconds: Double) -> FigureResult {
        var measures: [Measure] = []
        for (index, partition) in Self.partitions.enumerated() {
            measures += Self.times("\(partition)_sync", all, index, \.syncs)
            measures += Self.times("\(partition)_poll", all, index, \.polls)
        }
        func samples(_ value: (AbuseRun.Found) -> Double) -> Samples { Samples(all.map(value)) }
        func sum(_ value: KeyPath<WellBehavedDevices.Times, Int>) -> Samples {
            samples { Double($0.abused.reduce(0) { $0 + $1[keyPath: value] }) }
        }
        measures += [
            Measure("refused", sum(\.refused), "", target: .atMost(0)), Measure("pending", sum(\.pending), ""),
            Measure("memory_before", samples { Double($0.memory.before) / 1e6 }, "MB"),
            Measure(
                "memory_highest", samples { Double($0.memory.after) / 1e6 }, "MB",
                target: .atMost(Double(MemoryBound.bytes) / 1e6)),
        ]
        for kind in AbuseKind.allCases {
            measures += [
                Measure(
                    "\(kind.rawValue)_answered", samples { Double($0.counts[kind]?.answered ?? 0) / seconds }, "/s"),
                Measure("\(kind.rawValue)_refused", samples { Double($0.counts[kind]?.ended ?? 0) / seconds }, "/s"),
            ]
        }
        measures += [
            Measure("server_cpu", samples { Double($0.usage.serverCPU) / 1e9 / seconds }, "CPU"),
            Measure("load_cpu", samples { Double($0.usage.loadCPU) / 1e9 / seconds }, "CPU"),
        ]
        return FigureResult(
            measures: measures,
            checks: all.map { Check(name: "rows of the devices", expected: $0.synced, found: $0.rows) },
            othersShare: all.map(\.usage.othersShare).max() ?? 0)
    }

    private static func times(
        _ name: String, _ all: [AbuseRun.Found], _ index: Int, _ list: KeyPath<WellBehavedDevices.Times, [Double]>
    ) -> [Measure] {
        func samples(_ value: (Samples) -> Double) -> (alone: Samples, abused: Samples) {
            (
                Samples(all.map { value(Samples($0.alone[index][keyPath: list])) }),
                Samples(all.map { value(Samples($0.abused[index][keyPath: list])) })
            )
        }
        let (median, late, worst) = (samples(\.median), samples { $0.quantile(0.99) }, samples(\.high))
        let ratios = all.map {
            Samples($0.abused[index][keyPath: list]).quantile(0.99)
                / Samples($0.alone[index][keyPath: list]).quantile(0.99)
        }
        return [
            Measure("\(name)_p50_alone", median.alone, "ms"), Measure("\(name)_p50", median.abused, "ms"),
            Measure("\(name)_p99_alone", late.alone, "ms"), Measure("\(name)_p99", late.abused, "ms"),
            Measure("\(name)_max_alone", worst.alone, "ms"), Measure("\(name)_max", worst.abused, "ms"),
            Measure("\(name)_p99_ratio", Samples(ratios), "", target: .atMost(3)),
        ]
    }
}
