import Commands

/// How long a device waits until a change is safe.
struct UploadAcknowledged: Figure {
    let name = "upload"
    let title = "one change uploaded until it is acknowledged, one device"

    func measure(_ bench: Bench) async throws -> FigureResult {
        let count = bench.scale.pick(10, 400, 2000)
        let rounds = bench.scale.repetitions
        return try await bench.withServer(name) { server in
            try await bench.showing(name, total: (rounds + 1) * count, unit: "uploads") { bar in
                let owner = Owners.spread(1)[0]
                let machine = try MachineAccount(server: server.process)
                let folder = bench.folder
                let port = server.port
                let (uploads, syncs, last) = try await LoadThreads.run {
                    let connection = try LoadConnection(port: port)
                    let requests = Requests(owner: owner, device: "k1")
                    var rows = Workload.Rows(seed: 2)
                    var uploads: [Double] = []
                    var syncs: [Double] = []
                    var batch = 0
                    // The first round warms up; disk and server take turns, so that both see the same neighbours.
                    for round in 0...rounds {
                        for _ in 0..<count {
                            batch += 1
                            let request = requests.upload(batch: batch, of: [rows.next()])
                            let start = SystemCall.nanoseconds()
                            try connection.exchange(request, expecting: 202)
                            if round > 0 { uploads.append(Double(SystemCall.nanoseconds() - start) / 1e6) }
                            bar.advance()
                        }
                        if round > 0 { syncs += try FsyncBaseline.milliseconds(count, in: folder).sorted }
                    }
                    try Upload.waitForOutcome(requests.pull(including: batch), on: connection)
                    return (Samples(uploads), Samples(syncs), batch)
                }
                let limit = 2 * syncs.median + 1
                var result = FigureResult(measures: [
                    Measure("upload_p50", uploads.median, "ms", target: .atMost(limit)),
                    Measure("upload_p99", uploads.quantile(0.99), "ms"),
                    Measure("fsync_p50", syncs.median, "ms"),
                    Measure("fsync_p99", syncs.quantile(0.99), "ms"),
                    Measure("upload_p50_in_fsyncs", uploads.median / syncs.median),
                ])
                result.othersShare = try MachineAccount(server: server.process).othersShare(since: machine)
                result.checks.append(("rows of the owner", last, try await Drain.count(of: owner, on: server)))
                return result
            }
        }
    }
}
