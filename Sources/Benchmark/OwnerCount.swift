import Commands

/// Whether a change costs the same when the same rows belong to many owners.
struct OwnerCount: Figure {
    let name = "owners"
    let title = "a change's cost with few owners and with many, as many rows"

    func measure(_ bench: Bench) async throws -> FigureResult {
        let (few, many) = bench.scale.pick((32, 64), (100, 10_000), (1000, 1_000_000))
        let rows = bench.scale.pick(640, 200_000, 10_000_000)
        let repetitions = bench.scale.repetitions
        return try await bench.withServer("owners-few") { first in
            try await bench.withServer("owners-many") { second in
                var populations = [
                    Population(server: first, owners: few, rows: rows),
                    Population(server: second, owners: many, rows: rows),
                ]
                try await bench.showing("\(name): loading", total: 2 * rows, unit: "changes") { bar in
                    for index in populations.indices { try await populations[index].load(bar) }
                }
                let kinds = [
                    Kind(name: "batch", size: 200, uploads: bench.scale.pick(1, 50, 200), connections: 8),
                    Kind(name: "single", size: 1, uploads: bench.scale.pick(1, 250, 1000), connections: 32),
                ]
                let changes = kinds.reduce(0) { $0 + $1.changes } * 2 * (repetitions + 1)
                return try await bench.showing(name, total: changes, unit: "changes") { bar in
                    var result = FigureResult(measures: [
                        Measure("few_owners", Double(few)), Measure("many_owners", Double(many)),
                        Measure("rows", Double(rows)),
                    ])
                    for kind in kinds {
                        let costs = try await compare(kind, &populations, repetitions: repetitions, bar)
                        result.measures += Self.measures(of: costs, kind)
                        result.othersShare = max(result.othersShare, costs.map(\.others).max() ?? 0)
                    }
                    for population in populations {
                        let found = try await population.countFirstOwner()
                        result.checks.append(("rows of an owner", population.expectedOfFirstOwner, found))
                    }
                    return result
                }
            }
        }
    }

    /// A way of uploading.
    private struct Kind {
        let name: String
        /// Changes of an upload.
        let size: Int
        /// Uploads of each connection in a repetition.
        let uploads: Int
        let connections: Int

        var changes: Int { size * uploads * connections }
    }

    /// What a change cost with few owners, and right afterwards with many.
    private struct Costs {
        var few: Population.Cost
        var many: Population.Cost
        var others: Double
    }

    /// Takes turns, so that both see the same neighbours; the first turn warms up.
    private func compare(
        _ kind: Kind, _ populations: inout [Population], repetitions: Int, _ bar: ProgressBar
    ) async throws -> [Costs] {
        var costs: [Costs] = []
        for repetition in 0...repetitions {
            let machine = try MachineAccount(populations[1].server)
            let shape = (kind.connections, kind.uploads, kind.size)
            let few = try await populations[0].upload(shape, bar)
            let many = try await populations[1].upload(shape, bar)
            let others = try MachineAccount(populations[1].server).othersShare(since: machine)
            if repetition > 0 { costs.append(Costs(few: few, many: many, others: others)) }
        }
        return costs
    }

    private static func measures(of costs: [Costs], _ kind: Kind) -> [Measure] {
        // A batch shares its cost; a single change pays for its owner's place on disk alone.
        let target = kind.size > 1 ? 1.3 : 3
        return [
            Measure("\(kind.name)_few_owners", Samples(costs.map(\.few.microseconds)), "us"),
            Measure("\(kind.name)_many_owners", Samples(costs.map(\.many.microseconds)), "us"),
            Measure(
                "\(kind.name)_ratio", Samples(costs.map { $0.many.microseconds / $0.few.microseconds }), "",
                target: .atMost(target)),
            Measure("\(kind.name)_cpu_few_owners", Samples(costs.map(\.few.cpuMicroseconds)), "us"),
            Measure("\(kind.name)_cpu_many_owners", Samples(costs.map(\.many.cpuMicroseconds)), "us"),
            Measure(
                "\(kind.name)_cpu_ratio", Samples(costs.map { $0.many.cpuMicroseconds / $0.few.cpuMicroseconds }), ""),
        ]
    }
}
