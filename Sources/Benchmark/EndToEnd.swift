import Commands

/// From the first request to the moment when the last change can be pulled, and where the CPU goes meanwhile.
struct EndToEnd: Figure {
    /// How the devices make their ids.
    let ids: Workload.IDs

    var name: String { ids == .random ? "end-to-end" : "end-to-end-growing" }

    var title: String {
        "8 devices upload batches of 200 changes until all can be pulled, ids "
            + (ids == .random ? "all random (UUID 4)" : "that grow (UUID 7)")
    }

    private let devices = 8
    private let batchSize = 200

    func measure(_ bench: Bench) async throws -> FigureResult {
        let batches = bench.scale.pick(2, 100, 250)
        let repetitions = bench.scale.repetitions
        return try await bench.withServer(name) { server in
            let isSampled = bench.scale != .smoke
            let total = (repetitions + (isSampled ? 2 : 1)) * devices * batches * batchSize
            return try await bench.showing(name, total: total, unit: "changes") { bar in
                let load = Devices(owners: Owners.spread(devices), batchSize: batchSize, ids: ids)
                var run = Run(server: server, devices: load, batches: batches)
                let raw = bench.folder.path + "/raw-\(name).db"
                // Files grow, caches fill.
                try await run.repetition(bar, raw: raw)
                run.measured = []
                for _ in 0..<repetitions { try await run.repetition(bar, raw: raw) }
                let hops = isSampled ? try await run.hops(bar, bench) : []
                return try await run.result(hops: hops)
            }
        }
    }

    /// What was measured in one repetition.
    private struct Repetition {
        let rate: Double
        let rawRate: Double
        let cpu: Int64
        let ownCPU: Int64
        let work: [ThreadWork: Int64]
        let others: Double
    }

    private struct Run {
        let server: ServerProcess
        let batches: Int
        var devices: Devices
        var measured: [Repetition] = []

        init(server: ServerProcess, devices: Devices, batches: Int) {
            self.server = server
            self.devices = devices
            self.batches = batches
        }

        private var changes: Int { devices.owners.count * batches * devices.batchSize }

        mutating func repetition(_ bar: ProgressBar, raw: String) async throws {
            let (plans, firstBatch) = try await devices.plan(batches: batches)
            let account = try ProcessAccount(of: server.process)
            let own = try SystemCall.ownCPUNanoseconds()
            let machine = try MachineAccount(server: server.process)
            let seconds = try await Upload.run(plans, to: server, bar)
            let others = try MachineAccount(server: server.process).othersShare(since: machine)
            let ownCPU = try SystemCall.ownCPUNanoseconds() - own
            let after = try ProcessAccount(of: server.process)
            let rawSeconds = try await writeRaw(to: raw, firstBatch: firstBatch)
            measured.append(
                Repetition(
                    rate: Double(changes) / seconds, rawRate: Double(changes) / rawSeconds,
                    cpu: after.cpu - account.cpu, ownCPU: ownCPU, work: after.cpuByWork(since: account),
                    others: others))
        }

        /// Writes the same rows to a SQLite file alone; the seconds it took.
        private func writeRaw(to path: String, firstBatch: Int) async throws -> Double {
            let (devices, count) = (devices, batches)
            return try await LoadThreads.run {
                let (owners, batchSize) = (devices.owners, devices.batchSize)
                var sources = owners.indices.map { devices.rows(device: $0, firstBatch: firstBatch) }
                var rows: [(owner: String, row: Workload.Row)] = []
                rows.reserveCapacity(owners.count * count * batchSize)
                for _ in 0..<count {
                    for owner in owners.indices {
                        for _ in 0..<batchSize { rows.append((owners[owner], sources[owner].next())) }
                    }
                }
                return try RawDatabase.use(path) { try $0.write(rows) }
            }
        }

        /// Takes samples in one more repetition, which is not measured: they cost a little, too.
        mutating func hops(_ bar: ProgressBar, _ bench: Bench) async throws -> [FigureResult.Share] {
            let (plans, _) = try await devices.plan(batches: batches)
            let sampler = HopSampler(of: server.process, in: bench.folder)
            let cpu = try SystemCall.cpuNanoseconds(of: server.process)
            _ = try await Upload.run(plans, to: server, bar)
            let used = Double(try SystemCall.cpuNanoseconds(of: server.process) - cpu) / 1000 / Double(changes)
            guard let samples = try await sampler?.stop() else { return [] }
            let all = Double(samples.values.reduce(0, +))
            return samples.sorted { $0.value > $1.value }.map {
                .init(name: $0.key.rawValue, microseconds: used * Double($0.value) / all)
            }
        }

        func result(hops: [FigureResult.Share]) async throws -> FigureResult {
            let perChange = 1 / (1000 * Double(changes))
            let rates = Samples(measured.map(\.rate))
            let ratio = Samples(measured.map { $0.rate / $0.rawRate })
            var result = FigureResult(measures: [
                Measure("changes_per_second", rates, "/s", target: .atLeast(40_000), aim: 70_000),
                Measure("raw_upsert_per_second", Samples(measured.map(\.rawRate)), "/s"),
                Measure("ratio_to_raw_upsert", ratio, ""),
                Measure("server_cpu_per_change", Samples(measured.map { Double($0.cpu) * perChange }), "us"),
                Measure("load_cpu_per_change", Samples(measured.map { Double($0.ownCPU) * perChange }), "us"),
            ])
            var sums: [ThreadWork: Int64] = [:]
            for repetition in measured { sums.merge(repetition.work, uniquingKeysWith: +) }
            result.threads = sums.filter { $0.value > 0 }.sorted { $0.value > $1.value }.map {
                .init(name: $0.key.rawValue, microseconds: Double($0.value) * perChange / Double(measured.count))
            }
            result.hops = hops
            result.othersShare = measured.map(\.others).max() ?? 0
            let found = try await Drain.count(of: devices.owners[0], on: server)
            result.checks.append(("rows of an owner", (devices.nextBatch - 1) * devices.batchSize, found))
            return result
        }
    }
}
