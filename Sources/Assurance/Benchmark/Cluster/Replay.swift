import Commands

/// How fast ordering alone works a filled topic off, from its beginning and into empty tables.
struct Replay: Figure {
    let name = "replay"
    let title = "ordering alone, from a filled topic into empty tables, batches of 200 changes of 8 devices"

    private let devices = 8
    private let batchSize = 200

    func measure(_ bench: Bench) async throws -> FigureResult {
        guard let cluster = bench.cluster else { preconditionFailure("replay is a figure of clusters") }
        let batches = bench.scale.pick(4, 200, 500)
        let repetitions = bench.scale.repetitions
        return try await ClusterSpace.with(cluster, bench.weir) { space in
            var load = Devices(owners: Owners.spread(devices), batchSize: batchSize)
            let changes = devices * batches * batchSize
            let (plans, firstBatch) = try await load.plan(batches: batches)
            try await bench.showing("\(name): loading", total: changes, unit: "changes") { bar in
                try await bench.withServer(name, in: space) { server in
                    _ = try await Upload.run(plans, to: server, bar)
                }
            }
            return try await bench.showing(name, total: repetitions + 1, unit: "repetitions") { bar in
                let neighbours = try await Neighbours.find(cluster)
                var measured: [Repetition] = []
                for number in 0...repetitions {
                    try await space.removeTables()
                    var repetition = try await order(devices * batches, space, neighbours, bench)
                    try await space.removeTables()
                    let raw = RawUpsert.table(try await RawTable(in: space))
                    let seconds = try await raw.write(load, firstBatch: firstBatch, batches: batches)
                    repetition.rawRate = Double(changes) / seconds
                    // The first warms up.
                    if number > 0 { measured.append(repetition) }
                    bar.advance()
                }
                return result(measured, rows: changes)
            }
        }
    }

    private struct Repetition {
        /// Changes that were timed: those behind the first that the tables were seen to have.
        let changes: Int
        let seconds: Double
        let cpu: Int64
        let neighbours: Neighbours.CPU
        /// Bytes at the end.
        let memory: Int
        /// Rows that the tables had at the end.
        let rows: Int
        let others: Double
        var rawRate = 0.0

        var rate: Double { Double(changes) / seconds }
    }

    /// Starts the stage and waits until it has written everything; the start, with its joining of the group, is not counted.
    private func order(
        _ messages: Int, _ space: ClusterSpace, _ neighbours: Neighbours, _ bench: Bench
    ) async throws -> Repetition {
        let arguments =
            ["ordering", "--log-format", "json", "--operations.address", "off"] + space.logFlags
            + space.tableFlags
        let start = TablePositions.Moment(messages: 0, nanoseconds: SystemCall.nanoseconds())
        let ordering = try bench.weir.start(arguments)
        ordering.lines.readOn()
        let positions = TablePositions(space: space)
        let seen = try await positions.wait(for: 1)
        // Little may have been written at once.
        let first = seen.messages < messages ? seen : start
        let used = try neighbours.cpu()
        let machine = try MachineAccount(server: ordering.process, others: used.sum)
        let cpu = try SystemCall.cpuNanoseconds(of: ordering.process)
        let last = try await positions.wait(for: messages)
        let after = try neighbours.cpu()
        let repetition = Repetition(
            changes: (last.messages - first.messages) * batchSize,
            seconds: Double(last.nanoseconds - first.nanoseconds) / 1e9,
            cpu: try SystemCall.cpuNanoseconds(of: ordering.process) - cpu,
            neighbours: after.since(used), memory: try ProcessAccount.residentMemory(of: ordering.process),
            rows: try await positions.rows(),
            others: try MachineAccount(server: ordering.process, others: after.sum).othersShare(since: machine))
        try await ordering.stop()
        return repetition
    }

    private func result(_ measured: [Repetition], rows: Int) -> FigureResult {
        var result = FigureResult(measures: [
            Measure("changes_per_second", Samples(measured.map(\.rate)), "/s"),
            Measure("raw_upsert_per_second", Samples(measured.map(\.rawRate)), "/s"),
            Measure(
                "ratio_to_raw_upsert", Samples(measured.map { $0.rate / $0.rawRate }), "", target: .atLeast(0.4),
                aim: 0.55),
            Measure(
                "ordering_cpu_per_change", Samples(measured.map { Double($0.cpu) / 1000 / Double($0.changes) }), "us"),
            Measure("ordering_memory", Samples(measured.map { Double($0.memory) / 1e6 }), "MB"),
        ])
        result.measures +=
            measured.first.map { Neighbours.measures(measured.map(\.neighbours), changes: $0.changes) } ?? []
        result.othersShare = measured.map(\.others).max() ?? 0
        result.checks = measured.map { ("rows of the tables", rows, $0.rows) }
        return result
    }
}
