import Commands
import LoadTools

/// How fast ordering alone processes a filled topic, from its beginning and into empty tables.
struct Replay: Figure {
    let name = "replay"
    let title = "ordering alone, from a filled topic into empty tables, batches of 200 changes of 8 devices"

    private let devices = 8
    private let batchSize = 200

    func measure(_ bench: Bench) async throws -> FigureResult {
        let batches = bench.scale.pick(4, 200, 500)
        return try await bench.withSpace { space in
            guard let space else { preconditionFailure("replay is a figure of clusters") }
            var load = Devices(owners: Owners.spread(devices), batchSize: batchSize)
            let changes = devices * batches * batchSize
            let (plans, firstBatch) = try await load.plan(batches: batches)
            try await bench.showing("\(name): loading", total: changes, unit: "changes") { bar in
                try await bench.withServer(name, in: space) { server in
                    _ = try await Upload.run(plans, to: server, bar)
                }
            }
            let cluster = try await ClusterProcesses.find(space.cluster)
            let total = bench.scale.repetitions + 1
            let measured = try await bench.showing(name, total: total, unit: "repetitions") { bar in
                try await bench.repeating { _ in
                    try await space.removeTables()
                    var (repetition, rows) = try await order(devices * batches, space, cluster, bench)
                    try await space.removeTables()
                    let raw = RawUpsert.table(space)
                    try await raw.prepare()
                    let seconds = try await raw.write(load, firstBatch: firstBatch, batches: batches)
                    repetition.baseline = Double(changes) / seconds
                    bar.advance()
                    return (repetition, rows: rows)
                }
            }
            let repetitions = Repetitions(item: "change", all: measured.map(\.0))
            return FigureResult(
                measures: [repetitions.rate()]
                    + repetitions.baseline("raw_upsert", target: .atLeast(0.4), aim: 0.55)
                    + [repetitions.cpu("ordering", \.serverCPU), repetitions.memory("ordering")]
                    + repetitions.clusterCPU(),
                checks: measured.map { Check(name: "rows of the tables", expected: changes, found: $0.rows) },
                othersShare: repetitions.othersShare)
        }
    }

    /// Starts ordering and waits until it has written everything; its start, until it has joined the group, is not measured.
    private func order(
        _ records: Int, _ space: ClusterSpace, _ cluster: ClusterProcesses, _ bench: Bench
    ) async throws -> (Repetition, rows: Int) {
        let arguments =
            ["ordering", "--log-format", "json", "--operations.address", "off"] + space.logFlags + space.tableFlags
        let start = TablePositions.Moment(records: 0, nanoseconds: SystemCall.nanoseconds())
        let ordering = try bench.weir.start(arguments)
        ordering.lines.readOn()
        let positions = TablePositions(space: space)
        let seen = try await positions.wait(for: 1)
        // The first transaction may have written everything where there is little.
        let first = seen.records < records ? seen : start
        let meter = try Meter([ordering.process], cluster)
        let last = try await positions.wait(for: records)
        var repetition = Repetition(
            count: (last.records - first.records) * batchSize,
            seconds: Double(last.nanoseconds - first.nanoseconds) / 1e9, usage: try meter.usage())
        repetition.memory = try Meter.residentMemory(of: ordering.process)
        let rows = try await positions.rows()
        try await ordering.stop()
        return (repetition, rows)
    }
}
