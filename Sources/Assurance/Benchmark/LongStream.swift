import Commands

/// How fast a new device gets everything.
struct LongStream: Figure {
    let name = "stream"
    let title = "a long stream pulled on one connection, without gzip, not decoded"

    func measure(_ bench: Bench) async throws -> FigureResult {
        let batches = bench.scale.pick(2, 200, 1000)
        let repetitions = bench.scale.repetitions
        let rows = batches * 1000
        return try await bench.withServer(name) { server in
            let owner = Owners.spread(1)[0]
            var devices = Devices(owners: [owner], batchSize: 1000)
            try await bench.showing("\(name): loading", total: rows, unit: "changes") { bar in
                let (plans, _) = try await devices.plan(batches: batches)
                _ = try await Upload.run(plans, to: server, bar)
            }
            let raw = bench.folder.path + "/raw-stream.db"
            let source = devices.rows(device: 0, firstBatch: 1)
            try await LoadThreads.run {
                var source = source
                _ = try RawDatabase.use(raw) { try $0.write((0..<rows).map { _ in (owner, source.next()) }) }
            }
            return try await bench.showing(name, total: (repetitions + 1) * rows, unit: "rows") { bar in
                let port = server.port
                let process = server.process
                var pulls: [Pull] = []
                var scans: [Double] = []
                for repetition in 0...repetitions {
                    let machine = try MachineAccount(server: process)
                    let one = try await LoadThreads.run { try pull(owner, port: port, process: process, machine) }
                    let scan = try await LoadThreads.run { try RawDatabase.use(raw) { try $0.scan() } }
                    bar.advance(by: rows)
                    if repetition == 0 { continue }
                    pulls.append(one)
                    scans.append(Double(scan.rows) / scan.seconds)
                }
                let count = Double(rows)
                var result = FigureResult(measures: [
                    Measure(
                        "rows_per_second", Samples(pulls.map { count / $0.seconds }), "/s",
                        target: .atLeast(400_000), aim: 1_000_000),
                    Measure("megabytes_per_second", Samples(pulls.map { $0.bytes / $0.seconds / 1e6 }), "MB/s"),
                    Measure("raw_scan_per_second", Samples(scans), "/s"),
                    Measure(
                        "ratio_to_raw_scan", Samples(zip(pulls, scans).map { count / $0.seconds / $1 }), ""),
                    Measure("server_cpu_per_row", Samples(pulls.map { $0.cpu / 1000 / count }), "us"),
                ])
                result.othersShare = pulls.map(\.others).max() ?? 0
                result.checks.append(("rows", rows, try await Drain.count(of: owner, on: server)))
                return result
            }
        }
    }

    /// What was measured of one pull of everything.
    private struct Pull {
        let seconds: Double
        let bytes: Double
        let cpu: Double
        let others: Double
    }

    private func pull(_ owner: String, port: UInt16, process: Int32, _ machine: MachineAccount) throws -> Pull {
        let connection = try LoadConnection(port: port)
        let drain = Drain(requests: Requests(owner: owner, device: "reader"), limit: 10_000)
        var bytes = 0
        let cpu = try SystemCall.cpuNanoseconds(of: process)
        let start = SystemCall.nanoseconds()
        try drain.run(on: connection) { bytes += $0.count }
        let seconds = Double(SystemCall.nanoseconds() - start) / 1e9
        return Pull(
            seconds: seconds, bytes: Double(bytes), cpu: Double(try SystemCall.cpuNanoseconds(of: process) - cpu),
            others: try MachineAccount(server: process).othersShare(since: machine))
    }
}
