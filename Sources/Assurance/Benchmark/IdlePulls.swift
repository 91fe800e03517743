import Commands

/// What devices cost that ask and get nothing.
struct IdlePulls: Figure {
    let name = "idle"
    let title = "pulls of devices that have everything, 32 connections"

    private static let threads = 2
    private static let connections = 16

    func measure(_ bench: Bench) async throws -> FigureResult {
        let rounds = bench.scale.pick(10, 3000, 15_000)
        let repetitions = bench.scale.repetitions
        return try await bench.withServer(name) { server in
            let pulls = Self.threads * Self.connections * rounds
            return try await bench.showing(name, total: pulls * (repetitions + 1), unit: "pulls") { bar in
                let owners = Owners.spread(8)
                var devices = Devices(owners: owners, batchSize: 50)
                // Not counted: the bar shows the pulls.
                let silent = ProgressBar(name, total: nil, unit: "", output: .init(isTerminal: false) { _ in })
                _ = try await Upload.run(try await devices.plan(batches: 2).plans, to: server, silent)
                let port = server.port
                let requests = try await LoadThreads.run {
                    let connection = try LoadConnection(port: port)
                    return try owners.map { try drained($0, connection) }
                }
                var measured: [Repetition] = []
                for repetition in 0...repetitions {
                    let one = try await self.repetition(requests, rounds: rounds, server, bar)
                    if repetition > 0 { measured.append(one) }
                }
                let count = Double(pulls)
                var result = FigureResult(measures: [
                    Measure(
                        "pulls_per_second", Samples(measured.map { count / $0.seconds }), "/s",
                        target: .atLeast(30_000), aim: 60_000),
                    Measure("server_cpu_per_pull", Samples(measured.map { $0.cpu / 1000 / count }), "us"),
                    Measure("load_cpu_per_pull", Samples(measured.map { $0.ownCPU / 1000 / count }), "us"),
                    Measure(
                        "disk_bytes_read", Samples(measured.map { Double($0.diskBytes) }), "B", target: .atMost(0)),
                    // A page of a file has 4096; waking a thread reads eight.
                    Measure(
                        "file_bytes_read_per_pull", Samples(measured.map { Double($0.fileBytes) / count }), "B",
                        target: .atMost(64)),
                ])
                result.othersShare = measured.map(\.others).max() ?? 0
                result.checks.append(("pulls without rows", pulls, measured.map(\.empty).min() ?? 0))
                return result
            }
        }
    }

    /// What was measured in one repetition.
    private struct Repetition {
        let seconds: Double
        let cpu: Double
        let ownCPU: Double
        let diskBytes: Int
        let fileBytes: Int
        let others: Double
        /// Pulls that were answered, and with no row.
        let empty: Int
    }

    private func repetition(
        _ requests: [[UInt8]], rounds: Int, _ server: ServerProcess, _ bar: ProgressBar
    ) async throws -> Repetition {
        let port = server.port
        let machine = try MachineAccount(server: server.process)
        let before = try ProcessAccount(of: server.process)
        let own = try SystemCall.ownCPUNanoseconds()
        let results = try await LoadThreads.run(Self.threads) { _ in
            let connections = try (0..<Self.connections).map { _ in try LoadConnection(port: port) }
            var empty = 0
            let start = SystemCall.nanoseconds()
            for _ in 0..<rounds {
                // All are under way before the first answer is waited for.
                for (index, connection) in connections.enumerated() {
                    try connection.send(requests[index % requests.count])
                }
                for connection in connections {
                    try connection.receive { status, body in
                        try LoadConnection.check(status, body, 200)
                        if body.firstRange(of: #""changes":[]"#, from: body.startIndex) != nil { empty += 1 }
                    }
                }
                bar.advance(by: connections.count)
            }
            return (start: start, end: SystemCall.nanoseconds(), empty: empty)
        }
        let after = try ProcessAccount(of: server.process)
        let start = results.map(\.start).min() ?? 0
        return Repetition(
            seconds: Double((results.map(\.end).max() ?? 0) - start) / 1e9, cpu: Double(after.cpu - before.cpu),
            ownCPU: Double(try SystemCall.ownCPUNanoseconds() - own),
            diskBytes: after.diskReadBytes - before.diskReadBytes, fileBytes: after.readBytes - before.readBytes,
            others: try MachineAccount(server: server.process).othersShare(since: machine),
            empty: results.reduce(0) { $0 + $1.empty })
    }

    /// The pull of a device that has everything of an owner.
    private func drained(_ owner: String, _ connection: LoadConnection) throws -> [UInt8] {
        let requests = Requests(owner: owner, device: "reader")
        var knowledge: [UInt8] = []
        try connection.exchange(requests.pull(limit: 10_000)) { status, body in
            try LoadConnection.check(status, body, 200)
            knowledge = Array(try PullAnswer(body).knowledge)
        }
        return requests.pull(knowledge: knowledge, limit: 1000)
    }
}
