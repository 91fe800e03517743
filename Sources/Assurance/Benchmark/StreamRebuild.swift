import Commands

/// How fast a server that has lost its streams makes them anew from the tables.
struct StreamRebuild: Figure {
    let name = "rebuild"
    let title = "all streams made anew from the tables, rows of 8 owners in 4 partitions"

    private let devices = 8
    private let batchSize = 200

    func measure(_ bench: Bench) async throws -> FigureResult {
        guard let cluster = bench.cluster else { return try await measure(bench, in: nil) }
        return try await ClusterSpace.with(cluster, bench.weir) { space in
            try await measure(bench, in: space)
        }
    }

    private func measure(_ bench: Bench, in space: ClusterSpace?) async throws -> FigureResult {
        let batches = bench.scale.pick(4, 200, 1250)
        let rows = devices * batches * batchSize
        let data = try await load(batches, bench, space)
        let copy: RawCopy = if let space { .database(space) } else { .file(data + "/tables.db") }
        let neighbours = try await Neighbours.find(bench.cluster)
        var measured: [Repetition] = []
        try await bench.showing(name, total: bench.scale.repetitions + 1, unit: "repetitions") { bar in
            for number in 0...bench.scale.repetitions {
                var repetition = try await rebuild(data, bench, space, neighbours)
                let raw = "\(bench.folder.path)/raw-\(name)-\(number).db"
                let (copied, seconds) = try await copy.run(to: raw)
                repetition.copied = copied
                repetition.rawRate = Double(copied) / seconds
                // The first warms up.
                if number > 0 { measured.append(repetition) }
                bar.advance()
            }
        }
        return result(measured, rows: rows)
    }

    /// Uploads the rows and waits until the tables have them; the folder of the server's data.
    private func load(_ batches: Int, _ bench: Bench, _ space: ClusterSpace?) async throws -> String {
        var load = Devices(owners: Owners.spread(devices), batchSize: batchSize)
        let (plans, _) = try await load.plan(batches: batches)
        let total = devices * batches * batchSize
        return try await bench.showing("\(name): loading", total: total, unit: "changes") { bar in
            let server = try await ServerProcess.start(bench.weir, in: bench.folder, name: name, space: space)
            _ = try await Upload.run(plans, to: server, bar)
            if let space { _ = try await TablePositions(space: space).wait(for: devices * batches) }
            try await server.stop(keepsData: true)
            return server.folder
        }
    }

    private struct Repetition {
        /// Those that the streams had in the end.
        let rows: Int
        let seconds: Double
        let cpu: Int64
        let neighbours: Neighbours.CPU
        /// Bytes at the end.
        let memory: Int
        let others: Double
        /// Those that the baseline copied, and how many a second.
        var copied = 0
        var rawRate = 0.0

        var rate: Double { Double(rows) / seconds }
    }

    /// Starts a server without streams and waits until it has made them: from the moment at which the first is missed.
    private func rebuild(
        _ data: String, _ bench: Bench, _ space: ClusterSpace?, _ neighbours: Neighbours
    ) async throws -> Repetition {
        for file in try SystemCall.names(in: data) where file.hasPrefix("fanout-") {
            try SystemCall.remove("\(data)/\(file)")
        }
        let command =
            if let space {
                ["fanout", "--link.address", "127.0.0.1:0"] + space.logFlags + space.tableFlags
            } else {
                ["run", "--schema", data + ".yaml", "--address", "127.0.0.1:0"]
            }
        let flags = ["--data", data, "--log-format", "json", "--log.level", "info", "--operations.address", "off"]
        let server = try bench.weir.start(command + flags)
        _ = try await lines(1, of: server, saying: "Stream must be rebuilt")
        let start = SystemCall.nanoseconds()
        let used = try neighbours.cpu()
        let machine = try MachineAccount(server: server.process, others: used.sum)
        let cpu = try SystemCall.cpuNanoseconds(of: server.process)
        // Each partition has owners.
        let rebuilt = try await lines(Owners.partitions, of: server, saying: "Stream was rebuilt with ")
        let end = SystemCall.nanoseconds()
        let after = try neighbours.cpu()
        let repetition = Repetition(
            rows: rebuilt.reduce(0) { $0 + Self.rows(in: $1) }, seconds: Double(end - start) / 1e9,
            cpu: try SystemCall.cpuNanoseconds(of: server.process) - cpu, neighbours: after.since(used),
            memory: try ProcessAccount.residentMemory(of: server.process),
            others: try MachineAccount(server: server.process, others: after.sum).othersShare(since: machine))
        server.lines.readOn()
        try await server.stop()
        return repetition
    }

    /// Waits for lines of the log.
    private func lines(_ count: Int, of server: WeirProcess, saying words: String) async throws -> [String] {
        let lines = server.lines
        guard let found = try await LoadThreads.run({ lines.read(count, saying: words) }) else {
            throw BenchmarkFailure("the server did not rebuild its streams:\n" + lines.newest.joined(separator: "\n"))
        }
        return found
    }

    /// The number behind "with".
    private static func rows(in line: String) -> Int {
        let bytes = Array(line.utf8)
        return bytes.firstRange(of: " with ", from: 0).map { bytes.number(from: $0.upperBound) } ?? 0
    }

    private func result(_ measured: [Repetition], rows: Int) -> FigureResult {
        func perRow(_ nanoseconds: Int64) -> Double { Double(nanoseconds) / 1000 / Double(rows) }
        var result = FigureResult(measures: [
            Measure("rows_per_second", Samples(measured.map(\.rate)), "/s"),
            Measure("raw_copy_per_second", Samples(measured.map(\.rawRate)), "/s"),
            Measure("ratio_to_raw_copy", Samples(measured.map { $0.rate / $0.rawRate }), ""),
            Measure("server_cpu_per_row", Samples(measured.map { perRow($0.cpu) }), "us"),
            Measure("server_memory", Samples(measured.map { Double($0.memory) / 1e6 }), "MB"),
        ])
        let database = measured.compactMap(\.neighbours.database)
        if !database.isEmpty {
            result.measures.append(Measure("database_cpu_per_row", Samples(database.map(perRow)), "us"))
        }
        result.othersShare = measured.map(\.others).max() ?? 0
        result.checks =
            measured.map { ("rows of the streams", rows, $0.rows) }
            + measured.map { ("rows of the baseline", rows, $0.copied) }
        return result
    }
}
