import Commands
import LoadTools

/// From the first request until the last change can be pulled, and what CPU a change costs.
struct EndToEnd: Figure {
    let ids: Workload.IDs
    /// Whether each change has a `changeId`.
    var hasChangeIDs = false
    /// Whether uploads wait for earlier ones of their caller as long as they do by default.
    var hasCallerLag = false

    var name: String {
        (ids == .random ? "end-to-end" : "end-to-end-growing") + (hasChangeIDs ? "-change-ids" : "")
            + (hasCallerLag ? "-caller-lag" : "")
    }

    var title: String {
        "8 devices upload batches of 200 changes until all can be pulled, ids "
            + (ids == .random ? "all random (UUID 4)" : "that grow (UUID 7)")
            + (hasChangeIDs ? ", each change with a changeId (UUID 4)" : "")
            + (hasCallerLag ? ", with the default gateway.caller-lag" : "")
    }

    func measure(_ bench: Bench) async throws -> FigureResult {
        let batches = bench.scale.pick(2, 100, 250)
        return try await bench.withServer(name, limits: hasCallerLag ? .allButRates : .none) { server in
            // Files grow, caches fill; brokers run on the JVM, which compiles what runs often.
            let warmUps = server.space == nil || bench.scale == .smoke ? 1 : 3
            let devices = Devices(owners: Owners.spread(8), batchSize: 200, ids: ids, hasChangeIDs: hasChangeIDs)
            let raw: RawUpsert =
                if let space = server.space { .table(space) } else { .file(bench.folder.path + "/raw-\(name).db") }
            try await raw.prepare()
            var run = Run(server: server, batches: batches, raw: raw, devices: devices)
            let total = (warmUps + bench.scale.repetitions) * run.changes
            let measured = try await bench.showing(name, total: total, unit: "changes") { bar in
                try await bench.repeating(warmUps: warmUps) { _ in try await run.repeat(bar) }
            }
            var result = result(measured, server)
            let found = try await Drain.count(of: devices.owners[0], on: server)
            result.checks = [
                Check(
                    name: "rows of an owner", expected: (run.devices.nextBatch - 1) * devices.batchSize, found: found)
            ]
            return result
        }
    }

    private struct Run {
        let server: ServerProcess
        let batches: Int
        let raw: RawUpsert
        var devices: Devices

        var changes: Int { devices.owners.count * batches * devices.batchSize }

        /// Uploads the next batches of all devices, and does the same work with the baselines.
        mutating func `repeat`(_ bar: ProgressBar) async throws -> (Repetition, log: RawTopic.Rates?) {
            let (plans, firstBatch) = try await devices.plan(batches: batches)
            let meter = try server.meter()
            let start = SystemCall.nanoseconds()
            var seconds = try await Upload.run(plans, to: server, bar)
            if let space = server.space {
                // Streams do not wait for the tables in Postgres.
                let all = (devices.nextBatch - 1) * devices.owners.count
                let end = try await TablePositions(space: space).wait(for: all)
                seconds = max(seconds, Double(end.nanoseconds - start) / 1e9)
            }
            var repetition = Repetition(count: changes, seconds: seconds, usage: try meter.usage())
            let rawSeconds = try await raw.write(devices, firstBatch: firstBatch, batches: batches)
            repetition.baseline = Double(changes) / rawSeconds
            guard let space = server.space else { return (repetition, nil) }
            return (repetition, try await RawTopic(space: space).run(plans.flatMap(\.uploads)).per(changes))
        }
    }

    private func result(_ measured: [(Repetition, log: RawTopic.Rates?)], _ server: ServerProcess) -> FigureResult {
        let repetitions = Repetitions(item: "change", all: measured.map(\.0))
        let isCluster = server.space != nil
        var measures = [
            repetitions.rate(target: .atLeast(isCluster ? 12_000 : 40_000), aim: isCluster ? nil : 70_000)
        ]
        measures += repetitions.baseline(
            "raw_upsert", target: isCluster ? .atLeast(0.25) : nil, aim: isCluster ? 0.4 : nil)
        let log = measured.compactMap(\.log)
        if !log.isEmpty {
            measures += [
                Measure("raw_produce_per_second", Samples(log.map(\.produced)), "/s"),
                Measure("raw_consume_per_second", Samples(log.map(\.consumed)), "/s"),
            ]
        }
        measures += [repetitions.cpu("server", \.serverCPU), repetitions.cpu("load", \.loadCPU)]
        for (index, part) in server.parts.enumerated() where server.parts.count > 1 {
            measures.append(repetitions.cpu(part.name) { $0.cpu[index] })
        }
        measures += repetitions.clusterCPU()
        return FigureResult(measures: measures, othersShare: repetitions.othersShare)
    }
}
