import Commands

/// Whether a change costs the same when the same rows belong to many owners.
struct OwnerCount: Figure {
    let name = "owners"
    let title = "a change's cost with few owners and with many, as many rows"

    func measure(_ bench: Bench) async throws -> FigureResult {
        let (few, many) = bench.scale.pick((32, 64), (100, 10_000), (1000, 1_000_000))
        let rows = bench.scale.pick(640, 200_000, 10_000_000)
        let kinds = [
            Kind(name: "batch", size: 200, uploads: bench.scale.pick(1, 50, 200), connections: 8),
            Kind(name: "single", size: 1, uploads: bench.scale.pick(1, 250, 1000), connections: 32),
        ]
        let ofFew = try await measure(bench, "owners-few", owners: few, rows: rows, kinds)
        let ofMany = try await measure(bench, "owners-many", owners: many, rows: rows, kinds)
        var result = FigureResult(measures: [
            Measure("few_owners", Double(few)), Measure("many_owners", Double(many)), Measure("rows", Double(rows)),
        ])
        for (index, kind) in kinds.enumerated() {
            result.measures += Self.measures(kind, few: ofFew.repetitions[index], many: ofMany.repetitions[index])
        }
        result.othersShare = (ofFew.repetitions + ofMany.repetitions).map(\.othersShare).max() ?? 0
        result.checks = [ofFew.check, ofMany.check]
        return result
    }

    private struct Measured {
        /// The repetitions of each kind.
        var repetitions: [Repetitions] = []
        /// The rows of the first owner.
        let check: Check
    }

    /// Loads a server and measures it.
    ///
    /// One server runs after the other: at full scale the machine's memory holds the tables and streams of one, and
    /// two would measure the disk.
    private func measure(
        _ bench: Bench, _ server: String, owners: Int, rows: Int, _ kinds: [Kind]
    ) async throws -> Measured {
        try await bench.withServer(server) { server in
            var population = Population(server: server, owners: owners, rows: rows)
            try await bench.showing("\(name): loading \(owners) owners", total: rows, unit: "changes") { bar in
                try await population.load(bar)
            }
            let changes = kinds.reduce(0) { $0 + $1.changes } * (bench.scale.repetitions + 1)
            return try await bench.showing("\(name): \(owners) owners", total: changes, unit: "changes") { bar in
                var repetitions: [Repetitions] = []
                for kind in kinds {
                    let all = try await bench.repeating { _ in
                        try await population.upload((kind.connections, kind.uploads, kind.size), bar)
                    }
                    repetitions.append(Repetitions(item: "change", all: all))
                }
                let found = try await population.countFirstOwner()
                return Measured(
                    repetitions: repetitions,
                    check: Check(
                        name: "rows of an owner", expected: population.changesOfFirstOwner, found: found))
            }
        }
    }

    private struct Kind {
        let name: String
        /// Changes of an upload.
        let size: Int
        /// Uploads of each connection in a repetition.
        let uploads: Int
        let connections: Int

        var changes: Int { size * uploads * connections }
    }

    private static func measures(_ kind: Kind, few: Repetitions, many: Repetitions) -> [Measure] {
        // The changes of a batch share its cost; a single change pays alone for reading its owner's pages.
        let target = kind.size > 1 ? 1.3 : 3
        func compared(
            _ name: String, target: Measure.Target?, _ microseconds: (Repetition) -> Double
        ) -> [Measure] {
            let ratios = zip(few.all, many.all).map { microseconds($1) / microseconds($0) }
            return [
                Measure("\(name)_few_owners", few.samples(microseconds), "us"),
                Measure("\(name)_many_owners", many.samples(microseconds), "us"),
                Measure("\(name)_ratio", Samples(ratios), "", target: target),
            ]
        }
        return compared(kind.name, target: .atMost(target)) { 1e6 / $0.rate }
            + compared(kind.name + "_cpu", target: nil) { $0.microseconds($0.usage.serverCPU) }
    }
}
