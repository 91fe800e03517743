import Commands
import LoadTools

/// How fast a new device pulls everything.
struct LongStream: Figure {
    let name = "stream"
    let title = "a long stream pulled on one connection, without gzip, not decoded"

    func measure(_ bench: Bench) async throws -> FigureResult {
        let batches = bench.scale.pick(2, 200, 1000)
        let rows = batches * 1000
        return try await bench.withServer(name) { server in
            let owner = Owners.spread(1)[0]
            var devices = Devices(owners: [owner], batchSize: 1000)
            try await bench.showing("\(name): loading", total: rows, unit: "changes") { bar in
                let (plans, _) = try await devices.plan(batches: batches)
                _ = try await Upload.run(plans, to: server, bar)
            }
            let raw = bench.folder.path + "/raw-stream.db"
            _ = try await RawUpsert.file(raw).write(devices, firstBatch: 1, batches: batches)
            let total = (bench.scale.repetitions + 1) * rows
            let measured = try await bench.showing(name, total: total, unit: "rows") { bar in
                try await bench.repeating { _ in
                    var (repetition, bytes) = try await LoadThreads.run { try pull(owner, rows, server) }
                    let scan = try await LoadThreads.run {
                        try RawDatabase.use(raw) { database in try SystemCall.timed { try database.scan() } }
                    }
                    repetition.baseline = Double(scan.value) / scan.seconds
                    bar.advance(by: rows)
                    return (repetition, bytes: bytes)
                }
            }
            let repetitions = Repetitions(item: "row", all: measured.map(\.0))
            let megabytes = measured.map { Double($0.bytes) / $0.0.seconds / 1e6 }
            return FigureResult(
                measures: [
                    repetitions.rate(target: .atLeast(400_000), aim: 1_000_000),
                    Measure("megabytes_per_second", Samples(megabytes), "MB/s"),
                ] + repetitions.baseline("raw_scan") + [repetitions.cpu("server", \.serverCPU)],
                checks: [Check(name: "rows", expected: rows, found: try await Drain.count(of: owner, on: server))],
                othersShare: repetitions.othersShare)
        }
    }

    private func pull(_ owner: String, _ rows: Int, _ server: ServerProcess) throws -> (Repetition, bytes: Int) {
        let connection = try LoadConnection(port: server.port)
        let drain = Drain(requests: Requests(owner: owner, device: "reader"), limit: 10_000)
        var bytes = 0
        let meter = try server.meter()
        let pulled = try SystemCall.timed { try drain.run(on: connection) { bytes += $0.count } }
        return (Repetition(count: rows, seconds: pulled.seconds, usage: try meter.usage()), bytes)
    }
}
