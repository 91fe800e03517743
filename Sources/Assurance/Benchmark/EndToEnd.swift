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
            // Processes that have a role each are told apart without samples.
            let isSampled = bench.scale != .smoke && server.parts.count == 1
            // Files grow, caches fill; brokers are Java, and compile what they do often while they do it.
            let warmUps = server.space == nil || bench.scale == .smoke ? 1 : 3
            let total = (warmUps + repetitions + (isSampled ? 1 : 0)) * devices * batches * batchSize
            return try await bench.showing(name, total: total, unit: "changes") { bar in
                let load = Devices(owners: Owners.spread(devices), batchSize: batchSize, ids: ids)
                let raw: RawUpsert =
                    if let space = server.space {
                        .table(try await RawTable(in: space))
                    } else {
                        .file(bench.folder.path + "/raw-\(name).db")
                    }
                var run = Run(server: server, devices: load, batches: batches, raw: raw)
                for _ in 0..<warmUps { try await run.repetition(bar) }
                run.measured = []
                for _ in 0..<repetitions { try await run.repetition(bar) }
                let hops = isSampled ? try await run.hops(bar, bench) : []
                return try await run.result(hops: hops)
            }
        }
    }

    /// What was measured in one repetition.
    private struct Repetition {
        let rate: Double
        let rawRate: Double
        /// Of each process of the server.
        let cpu: [Int64]
        let ownCPU: Int64
        let neighbours: Neighbours.CPU
        let work: [ThreadWork: Int64]
        let others: Double
        /// Changes a second that the log alone takes and gives.
        var log: (produced: Double, consumed: Double)?
    }

    private struct Run {
        let server: ServerProcess
        let batches: Int
        let raw: RawUpsert
        var devices: Devices
        var measured: [Repetition] = []

        init(server: ServerProcess, devices: Devices, batches: Int, raw: RawUpsert) {
            self.server = server
            self.devices = devices
            self.batches = batches
            self.raw = raw
        }

        private var changes: Int { devices.owners.count * batches * devices.batchSize }

        mutating func repetition(_ bar: ProgressBar) async throws {
            let (plans, firstBatch) = try await devices.plan(batches: batches)
            let accounts = try server.parts.map { try ProcessAccount(of: $0.process) }
            let own = try SystemCall.ownCPUNanoseconds()
            let neighbours = try server.neighbours.cpu()
            let machine = try MachineAccount(server)
            let start = SystemCall.nanoseconds()
            var seconds = try await Upload.run(plans, to: server, bar)
            if let space = server.space {
                // Streams do not wait for the tables in Postgres.
                let all = (devices.nextBatch - 1) * devices.owners.count
                let end = try await TablePositions(space: space).wait(for: all)
                seconds = max(seconds, Double(end.nanoseconds - start) / 1e9)
            }
            let others = try MachineAccount(server).othersShare(since: machine)
            let used = try server.neighbours.cpu().since(neighbours)
            let ownCPU = try SystemCall.ownCPUNanoseconds() - own
            let after = try server.parts.map { try ProcessAccount(of: $0.process) }
            var work: [ThreadWork: Int64] = [:]
            for (now, before) in zip(after, accounts) { work.merge(now.cpuByWork(since: before), uniquingKeysWith: +) }
            let rawSeconds = try await raw.write(devices, firstBatch: firstBatch, batches: batches)
            var repetition = Repetition(
                rate: Double(changes) / seconds, rawRate: Double(changes) / rawSeconds,
                cpu: zip(after, accounts).map { $0.cpu - $1.cpu },
                ownCPU: ownCPU, neighbours: used, work: work, others: others)
            if let space = server.space {
                let times = try await RawTopic(space).run(plans.flatMap(\.uploads))
                repetition.log = (Double(changes) / times.produce, Double(changes) / times.consume)
            }
            measured.append(repetition)
        }

        /// Takes samples in one more repetition, which is not measured: they cost a little, too.
        mutating func hops(_ bar: ProgressBar, _ bench: Bench) async throws -> [FigureResult.Share] {
            let (plans, _) = try await devices.plan(batches: batches)
            let sampler = HopSampler(of: server.process, in: bench.folder)
            let cpu = try server.cpu()
            _ = try await Upload.run(plans, to: server, bar)
            let used = Double(try server.cpu() - cpu) / 1000 / Double(changes)
            guard let samples = try await sampler?.stop() else { return [] }
            let all = Double(samples.values.reduce(0, +))
            return samples.sorted { $0.value > $1.value }.map {
                .init(name: $0.key.rawValue, microseconds: used * Double($0.value) / all)
            }
        }

        func result(hops: [FigureResult.Share]) async throws -> FigureResult {
            let perChange = 1 / (1000 * Double(changes))
            var result = FigureResult(measures: rates())
            result.measures += [
                Measure(
                    "server_cpu_per_change", Samples(measured.map { Double($0.cpu.reduce(0, +)) * perChange }), "us"),
                Measure("load_cpu_per_change", Samples(measured.map { Double($0.ownCPU) * perChange }), "us"),
            ]
            for (index, part) in server.parts.enumerated() where server.parts.count > 1 {
                result.measures.append(
                    Measure(
                        "\(part.name)_cpu_per_change", Samples(measured.map { Double($0.cpu[index]) * perChange }),
                        "us"))
            }
            result.measures += Neighbours.measures(measured.map(\.neighbours), changes: changes)
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

        /// What was done a second, and the baselines.
        private func rates() -> [Measure] {
            let isCluster = server.space != nil
            let ratio = Samples(measured.map { $0.rate / $0.rawRate })
            var measures = [
                Measure(
                    "changes_per_second", Samples(measured.map(\.rate)), "/s",
                    target: .atLeast(isCluster ? 12_000 : 40_000), aim: isCluster ? nil : 70_000),
                Measure("raw_upsert_per_second", Samples(measured.map(\.rawRate)), "/s"),
                Measure(
                    "ratio_to_raw_upsert", ratio, "", target: isCluster ? .atLeast(0.25) : nil,
                    aim: isCluster ? 0.4 : nil),
            ]
            let log = measured.compactMap(\.log)
            if !log.isEmpty {
                measures += [
                    Measure("raw_produce_per_second", Samples(log.map(\.produced)), "/s"),
                    Measure("raw_consume_per_second", Samples(log.map(\.consumed)), "/s"),
                ]
            }
            return measures
        }
    }
}
