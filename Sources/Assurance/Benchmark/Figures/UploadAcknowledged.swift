import Commands
import Glibc
import LoadTools

/// How long a device waits until a change is safe.
struct UploadAcknowledged: Figure {
    let name = "upload"
    let title = "one change uploaded until it is acknowledged, one device"

    func measure(_ bench: Bench) async throws -> FigureResult {
        let count = bench.scale.pick(10, 400, 2000)
        return try await bench.withServer(name) { server in
            let total = (bench.scale.repetitions + 1) * count
            let device = Device(requests: Requests(owner: Owners.spread(1)[0], device: "k1"), port: server.port)
            let meter = try server.meter()
            // Server and baseline take turns, so that both run under the same conditions.
            let measured = try await bench.showing(name, total: total, unit: "uploads") { bar in
                try await bench.repeating { number in
                    let uploads = try await device.upload(from: number * count + 1, count: count, bar)
                    return (uploads, raw: try await baseline(count, server, bench))
                }
            }
            let othersShare = try meter.usage().othersShare
            let found = try await Drain.count(of: device.requests.owner, on: server)
            return FigureResult(
                measures: measures(
                    Samples(measured.flatMap(\.0)), Samples(measured.flatMap(\.raw)), isCluster: server.space != nil),
                checks: [Check(name: "rows of the owner", expected: total, found: found)], othersShare: othersShare)
        }
    }

    private struct Device: Sendable {
        let requests: Requests
        let port: UInt16

        /// Uploads batches of one change one after the other and waits until the last can be pulled; returns the
        /// milliseconds until each was acknowledged.
        func upload(from firstBatch: Int, count: Int, _ bar: ProgressBar) async throws -> [Double] {
            try await LoadThreads.run {
                let connection = try LoadConnection(port: port)
                var rows = Workload.Rows(seed: UInt64(firstBatch) << 20 | 2)
                var times: [Double] = []
                for batch in firstBatch..<(firstBatch + count) {
                    let request = requests.upload(batch: batch, of: [rows.next()])
                    let start = SystemCall.nanoseconds()
                    try connection.exchange(request, expecting: 202)
                    times.append(1000 * SystemCall.seconds(since: start))
                    bar.advance()
                }
                try Upload.waitForOutcome(requests.pull(including: firstBatch + count - 1), on: connection)
                return times
            }
        }
    }

    /// The least that an acknowledgement waits for: a sync of the disk, or the brokers' acknowledgement of as many bytes;
    /// returns the milliseconds of each.
    private func baseline(_ count: Int, _ server: ServerProcess, _ bench: Bench) async throws -> [Double] {
        guard let space = server.space else {
            return try await LoadThreads.run { try Self.syncs(count, in: bench.folder) }
        }
        var rows = Workload.Rows(seed: 3)
        return try await RawTopic(space: space).times(
            (0..<count).map { _ in
                var value: [UInt8] = []
                Workload.write(rows.next(), to: &value)
                return value
            })
    }

    /// Appends 4 KiB to a file and syncs it; returns the milliseconds of each.
    private static func syncs(_ count: Int, in folder: WorkFolder) throws(LoadFailure) -> [Double] {
        let path = folder.path + "/fsync"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .system("opening \(path)", errno) }
        defer {
            close(descriptor)
            unlink(path)
        }
        let block = [UInt8](repeating: 0x57, count: 4096)
        var times: [Double] = []
        for _ in 0..<count {
            let start = SystemCall.nanoseconds()
            guard write(descriptor, block, block.count) == block.count else { throw .system("writing \(path)", errno) }
            guard fdatasync(descriptor) == 0 else { throw .system("fdatasync", errno) }
            times.append(1000 * SystemCall.seconds(since: start))
        }
        return times
    }

    private func measures(_ uploads: Samples, _ raw: Samples, isCluster: Bool) -> [Measure] {
        let (baseline, limit) = isCluster ? ("raw_produce", 4) : ("fsync", 2 * raw.median + 1)
        return [
            Measure("upload_p50", uploads.median, "ms", target: .atMost(limit)),
            Measure("upload_p99", uploads.quantile(0.99), "ms"),
            Measure("\(baseline)_p50", raw.median, "ms"),
            Measure("\(baseline)_p99", raw.quantile(0.99), "ms"),
            Measure("upload_p50_in_\(baseline)s", uploads.median / raw.median),
        ]
    }
}
