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
        for (kind, (few, many)) in zip(kinds, zip(ofFew.costs, ofMany.costs)) {
            result.measures += Self.measures(kind, few: few, many: many)
        }
        result.othersShare = max(ofFew.others, ofMany.others)
        result.checks = [ofFew, ofMany].map { ("rows of an owner", $0.expected, $0.found) }
        return result
    }

    /// What one server showed.
    private struct Seen {
        /// For each kind what a change cost in each repetition.
        var costs: [[Population.Cost]] = []
        var others = 0.0
        /// How many rows its first owner must have, and has.
        var (expected, found) = (0, 0)
    }

    /// Loads a server and measures it.
    ///
    /// One server comes after the other: at full scale the machine's memory holds the tables and streams of one, and
    /// two would measure the disk.
    private func measure(
        _ bench: Bench, _ server: String, owners: Int, rows: Int, _ kinds: [Kind]
    ) async throws -> Seen {
        try await bench.withServer(server) { server in
            var population = Population(server: server, owners: owners, rows: rows)
            try await bench.showing("\(name): loading \(owners) owners", total: rows, unit: "changes") { bar in
                try await population.load(bar)
            }
            // The first repetition warms up.
            let repetitions = bench.scale.repetitions + 1
            let changes = kinds.reduce(0) { $0 + $1.changes } * repetitions
            return try await bench.showing("\(name): \(owners) owners", total: changes, unit: "changes") { bar in
                var seen = Seen()
                for kind in kinds {
                    let machine = try MachineAccount(server)
                    var costs: [Population.Cost] = []
                    for _ in 0..<repetitions {
                        costs.append(try await population.upload((kind.connections, kind.uploads, kind.size), bar))
                    }
                    seen.costs.append(Array(costs.dropFirst()))
                    seen.others = max(seen.others, try MachineAccount(server).othersShare(since: machine))
                }
                seen.expected = population.expectedOfFirstOwner
                seen.found = try await population.countFirstOwner()
                return seen
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

    private static func measures(
        _ kind: Kind, few: [Population.Cost], many: [Population.Cost]
    ) -> [Measure] {
        // A batch shares its cost; a single change pays for its owner's place on disk alone.
        let target = kind.size > 1 ? 1.3 : 3
        let pairs = zip(few, many)
        return [
            Measure("\(kind.name)_few_owners", Samples(few.map(\.microseconds)), "us"),
            Measure("\(kind.name)_many_owners", Samples(many.map(\.microseconds)), "us"),
            Measure(
                "\(kind.name)_ratio", Samples(pairs.map { $1.microseconds / $0.microseconds }), "",
                target: .atMost(target)),
            Measure("\(kind.name)_cpu_few_owners", Samples(few.map(\.cpuMicroseconds)), "us"),
            Measure("\(kind.name)_cpu_many_owners", Samples(many.map(\.cpuMicroseconds)), "us"),
            Measure("\(kind.name)_cpu_ratio", Samples(pairs.map { $1.cpuMicroseconds / $0.cpuMicroseconds }), ""),
        ]
    }
}
