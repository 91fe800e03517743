import Commands
import LoadTools

/// What pulls cost that return nothing.
struct IdlePulls: Figure {
    let name = "idle"
    let title = "pulls of devices that have everything, 32 connections"

    private static let threads = 2
    private static let connections = 16

    func measure(_ bench: Bench) async throws -> FigureResult {
        let rounds = bench.scale.pick(10, 3000, 15_000)
        let pulls = Self.threads * Self.connections * rounds
        return try await bench.withServer(name) { server in
            let owners = Owners.spread(8)
            var devices = Devices(owners: owners, batchSize: 50)
            // Not counted: the bar shows the pulls.
            let silent = ProgressBar(name, total: nil, unit: "", output: .init(isTerminal: false) { _ in })
            _ = try await Upload.run(try await devices.plan(batches: 2).plans, to: server, silent)
            let requests = try await LoadThreads.run {
                let connection = try LoadConnection(port: server.port)
                return try owners.map { try drained($0, connection) }
            }
            let total = pulls * (bench.scale.repetitions + 1)
            let measured = try await bench.showing(name, total: total, unit: "pulls") { bar in
                try await bench.repeating { _ in try await repetition(requests, rounds: rounds, server, bar) }
            }
            let repetitions = Repetitions(item: "pull", all: measured.map(\.0))
            return FigureResult(
                measures: [
                    repetitions.rate(target: .atLeast(30_000), aim: 60_000), repetitions.cpu("server", \.serverCPU),
                    repetitions.cpu("load", \.loadCPU),
                    Measure(
                        "disk_bytes_read", repetitions.samples { Double($0.usage.diskReadBytes) }, "B",
                        target: .atMost(0)),
                    // A page of a file has 4096 bytes; waking a thread reads eight.
                    Measure(
                        "file_bytes_read_per_pull",
                        repetitions.samples { Double($0.usage.readBytes) / Double($0.count) }, "B", target: .atMost(64)),
                ],
                checks: [
                    Check(name: "pulls without rows", expected: pulls, found: measured.map(\.empty).min() ?? 0)
                ], othersShare: repetitions.othersShare)
        }
    }

    /// Pulls on all connections; also returns how many answers had no rows.
    private func repetition(
        _ requests: [[UInt8]], rounds: Int, _ server: ServerProcess, _ bar: ProgressBar
    ) async throws -> (Repetition, empty: Int) {
        let meter = try server.meter()
        let results = try await LoadThreads.run(Self.threads) { _ in
            let connections = try (0..<Self.connections).map { _ in try LoadConnection(port: server.port) }
            var empty = 0
            let start = SystemCall.nanoseconds()
            for _ in 0..<rounds {
                // All requests are sent before the first answer is read.
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
            return (TimeSpan(start: start, end: SystemCall.nanoseconds()), empty: empty)
        }
        let repetition = Repetition(
            count: Self.threads * Self.connections * rounds, seconds: results.map(\.0).seconds,
            usage: try meter.usage())
        return (repetition, results.reduce(0) { $0 + $1.empty })
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
