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
                let device = Device(requests: Requests(owner: Owners.spread(1)[0], device: "k1"), port: server.port)
                let machine = try MachineAccount(server)
                var uploads: [Double] = []
                var raw: [Double] = []
                // The first round warms up; what is below and server take turns, so that both see the same neighbours.
                for round in 0...rounds {
                    let times = try await device.upload(from: round * count + 1, count: count, bar)
                    if round == 0 { continue }
                    uploads += times
                    raw += try await baseline(count, server, bench)
                }
                var result = FigureResult(measures: measures(Samples(uploads), Samples(raw), server.space))
                result.othersShare = try MachineAccount(server).othersShare(since: machine)
                let last = (rounds + 1) * count
                let found = try await Drain.count(of: device.requests.owner, on: server)
                result.checks.append(("rows of the owner", last, found))
                return result
            }
        }
    }

    /// The device that uploads.
    private struct Device: Sendable {
        let requests: Requests
        let port: UInt16

        /// Uploads batches of one change one after the other and waits until the last can be pulled; the milliseconds until
        /// each was acknowledged.
        func upload(from firstBatch: Int, count: Int, _ bar: ProgressBar) async throws -> [Double] {
            try await LoadThreads.run {
                let connection = try LoadConnection(port: port)
                var rows = Workload.Rows(seed: UInt64(firstBatch) << 20 | 2)
                var times: [Double] = []
                for batch in firstBatch..<(firstBatch + count) {
                    let request = requests.upload(batch: batch, of: [rows.next()])
                    let start = SystemCall.nanoseconds()
                    try connection.exchange(request, expecting: 202)
                    times.append(Double(SystemCall.nanoseconds() - start) / 1e6)
                    bar.advance()
                }
                try Upload.waitForOutcome(requests.pull(including: firstBatch + count - 1), on: connection)
                return times
            }
        }
    }

    /// What an acknowledgement waits for at the least: a sync of the disk, or the brokers' word for as many bytes; the
    /// milliseconds of each.
    private func baseline(_ count: Int, _ server: ServerProcess, _ bench: Bench) async throws -> [Double] {
        guard let space = server.space else {
            let folder = bench.folder
            return try await LoadThreads.run { try FsyncBaseline.milliseconds(count, in: folder).sorted }
        }
        var rows = Workload.Rows(seed: 3)
        return try await RawTopic(space).times(
            (0..<count).map { _ in
                var value: [UInt8] = []
                Workload.write(rows.next(), to: &value)
                return value
            })
    }

    private func measures(_ uploads: Samples, _ raw: Samples, _ space: ClusterSpace?) -> [Measure] {
        let (baseline, limit) = space == nil ? ("fsync", 2 * raw.median + 1) : ("raw_produce", 4)
        return [
            Measure("upload_p50", uploads.median, "ms", target: .atMost(limit)),
            Measure("upload_p99", uploads.quantile(0.99), "ms"),
            Measure("\(baseline)_p50", raw.median, "ms"),
            Measure("\(baseline)_p99", raw.quantile(0.99), "ms"),
            Measure(
                space == nil ? "upload_p50_in_fsyncs" : "upload_p50_in_raw_produces", uploads.median / raw.median),
        ]
    }
}
