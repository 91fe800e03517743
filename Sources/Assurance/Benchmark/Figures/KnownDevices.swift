import Commands
import LoadTools

/// What devices that a gateway has seen cost the requests of others.
struct KnownDevices: Figure {
    let name = "devices"
    let title = "idle pulls of 2 devices before and after many other devices pulled"

    /// Devices of each owner: as many as a caller would have at most.
    private static let ofOwner = 100

    func measure(_ bench: Bench) async throws -> FigureResult {
        let count = bench.scale.pick(200, 100_000, 100_000)
        let pulls = bench.scale.pick(20, 2000, 10_000)
        return try await bench.withServer(name) { server in
            let owners = Owners.spread(2)
            var devices = Devices(owners: owners, batchSize: 50)
            let silent = ProgressBar(name, total: nil, unit: "", output: .init(isTerminal: false) { _ in })
            _ = try await Upload.run(try await devices.plan(batches: 1).plans, to: server, silent)
            let others = Owners.spread(count / Self.ofOwner, prefix: "other")
            let rounds = bench.scale.repetitions
            return try await bench.showing(name, total: count, unit: "devices") { bar in
                _ = try await Self.idle(owners, pulls, server)
                var before: [Double] = []
                for _ in 0..<rounds { before.append(try await Self.idle(owners, pulls, server)) }
                let memory = try Meter.residentMemory(of: server.process)
                let meter = try server.meter()
                let start = SystemCall.nanoseconds()
                let seen = try await Self.pull(others, server, bar)
                let seconds = SystemCall.seconds(since: start)
                let usage = try meter.usage()
                let grown = try Meter.residentMemory(of: server.process) - memory
                var after: [Double] = []
                for _ in 0..<rounds { after.append(try await Self.idle(owners, pulls, server)) }
                return FigureResult(
                    measures: [
                        Measure("idle_pull_before", Samples(before), "us"),
                        Measure("idle_pull_after", Samples(after), "us"),
                        Measure(
                            "idle_pull_ratio", Samples(after).median / Samples(before).median, "",
                            target: .atMost(1.1)),
                        Measure("first_pull", seconds * 1_000_000 / Double(count), "us"),
                        Measure("first_pull_cpu", Double(usage.serverCPU) / 1000 / Double(count), "us"),
                        Measure("memory", Double(grown) / 1e6, "MB"),
                    ], checks: [Check(name: "devices that pulled", expected: count, found: seen)],
                    othersShare: usage.othersShare)
            }
        }
    }

    /// The server's CPU for a pull of a device that has everything, in microseconds.
    private static func idle(_ owners: [String], _ count: Int, _ server: ServerProcess) async throws -> Double {
        let meter = try server.meter()
        _ = try await LoadThreads.run(owners.count) { index in
            let connection = try LoadConnection(port: server.port)
            let requests = Requests(owner: owners[index], device: "k1")
            let floor = try connection.exchange(requests.pull(limit: 1000)) { status, body in
                try LoadConnection.check(status, body, 200)
                return try PullAnswer(body).head
            }
            let request = requests.pull(above: floor)
            for _ in 0..<count { try connection.exchange(request, expecting: 200) }
        }
        return Double(try meter.usage().serverCPU) / 1000 / Double(owners.count * count)
    }

    /// Lets many devices pull once each; returns how many did.
    private static func pull(_ owners: [String], _ server: ServerProcess, _ bar: ProgressBar) async throws -> Int {
        let threads = 4
        let counts = try await LoadThreads.run(threads) { thread in
            let connection = try LoadConnection(port: server.port)
            var seen = 0
            for owner in stride(from: thread, to: owners.count, by: threads).map({ owners[$0] }) {
                for device in 1...ofOwner {
                    try connection.exchange(Requests(owner: owner, device: "d\(device)").pull(), expecting: 200)
                    seen += 1
                }
                bar.advance(by: ofOwner)
            }
            return seen
        }
        return counts.reduce(0, +)
    }
}
