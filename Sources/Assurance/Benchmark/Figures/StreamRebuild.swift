import Commands
import LoadTools

/// How fast a server that has lost its streams rebuilds them from the tables.
struct StreamRebuild: Figure {
    let name = "rebuild"
    let title = "all streams rebuilt from the tables, rows of 8 owners in 4 partitions"

    private let devices = 8
    private let batchSize = 200

    func measure(_ bench: Bench) async throws -> FigureResult {
        try await bench.withSpace { space in
            let batches = bench.scale.pick(4, 200, 1250)
            let data = try await load(batches, bench, space)
            let copy: RawCopy = if let space { .database(space) } else { .file(data + "/tables.db") }
            let cluster = try await ClusterProcesses.find(bench.cluster)
            let total = bench.scale.repetitions + 1
            let measured = try await bench.showing(name, total: total, unit: "repetitions") { bar in
                try await bench.repeating { number in
                    var repetition = try await rebuild(data, bench, space, cluster)
                    let copied = try await copy.run(to: "\(bench.folder.path)/raw-\(name)-\(number).db")
                    repetition.baseline = Double(copied.value) / copied.seconds
                    bar.advance()
                    return (repetition, copied: copied.value)
                }
            }
            return result(measured, rows: devices * batches * batchSize)
        }
    }

    private func result(_ measured: [(Repetition, copied: Int)], rows: Int) -> FigureResult {
        let repetitions = Repetitions(item: "row", all: measured.map(\.0))
        return FigureResult(
            measures: [repetitions.rate()] + repetitions.baseline("raw_copy")
                + [repetitions.cpu("server", \.serverCPU), repetitions.memory("server")]
                + repetitions.clusterCPU([("database", \.databaseCPU)]),
            checks: measured.map { Check(name: "rows of the streams", expected: rows, found: $0.0.count) }
                + measured.map { Check(name: "rows of the baseline", expected: rows, found: $0.copied) },
            othersShare: repetitions.othersShare)
    }

    /// Uploads the rows and waits until the tables have them; returns the server's data folder.
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

    /// Starts a server without streams and measures from its first "must be rebuilt" until all are.
    private func rebuild(
        _ data: String, _ bench: Bench, _ space: ClusterSpace?, _ cluster: ClusterProcesses
    ) async throws -> Repetition {
        for file in try SystemCall.names(in: data) where file.hasPrefix("fanout-") {
            try SystemCall.remove("\(data)/\(file)")
        }
        let command =
            if let space {
                ["fanout", "--link.address", "127.0.0.1:0"] + space.logFlags + space.tableFlags
            } else {
                ["run", "--schema", data + ".yaml", "--address", "127.0.0.1:0"] + RateFlags.unlimited
            }
        let flags = ["--data", data, "--log-format", "json", "--log.level", "info", "--operations.address", "off"]
        let server = try bench.weir.start(command + flags)
        _ = try await lines(1, of: server, containing: "Stream must be rebuilt")
        let start = SystemCall.nanoseconds()
        let meter = try Meter([server.process], cluster)
        // Each partition has owners.
        let rebuilt = try await lines(Owners.partitions, of: server, containing: "Stream was rebuilt with ")
        var repetition = Repetition(
            count: rebuilt.reduce(0) { $0 + Self.rows(in: $1) }, seconds: SystemCall.seconds(since: start),
            usage: try meter.usage())
        repetition.memory = try Meter.residentMemory(of: server.process)
        server.lines.readOn()
        try await server.stop()
        return repetition
    }

    /// Waits for lines of the log.
    private func lines(_ count: Int, of server: WeirProcess, containing text: String) async throws -> [String] {
        let lines = server.lines
        guard let found = try await LoadThreads.run({ lines.read(count, containing: text) }) else {
            throw LoadFailure("the server did not rebuild its streams:\n" + lines.newest.joined(separator: "\n"))
        }
        return found
    }

    /// The number after "with".
    private static func rows(in line: String) -> Int {
        let bytes = Array(line.utf8)
        return bytes.firstRange(of: " with ", from: 0).map { bytes.number(from: $0.upperBound) } ?? 0
    }
}
