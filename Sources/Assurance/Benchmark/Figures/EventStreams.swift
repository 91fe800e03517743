import Commands
import Glibc
import LoadTools

/// What event streams cost while they wait, and what waking them costs.
struct EventStreams: Figure {
    let name = "watchers"
    let title = "event streams that wait, and waking them"

    func measure(_ bench: Bench) async throws -> FigureResult {
        let watchers = bench.scale.pick(20, 10_000, 10_000)
        let owners = Owners.spread(bench.scale.pick(2, 100, 100))
        let rounds = bench.scale.repetitions
        let needed = watchers + 256
        let limit = try FileLimit.raise()
        guard limit >= needed else {
            throw LoadFailure(
                "\(watchers) event streams need \(needed) open files, and \(limit) are allowed: raise the hard limit "
                    + "(ulimit -Hn), or leave \(name) out with --only")
        }
        return try await bench.withServer(name) { server in
            try await bench.showing(name, total: watchers * (rounds + 1), unit: "streams and wakings") { bar in
                let port = server.port
                let process = server.process
                return try await LoadThreads.run {
                    try measure(watchers, owners, rounds: rounds, port: port, process: process, bar)
                }
            }
        }
    }

    private func measure(
        _ count: Int, _ owners: [String], rounds: Int, port: UInt16, process: Int32, _ bar: ProgressBar
    ) throws -> FigureResult {
        let meter = try Meter([process])
        var uploads = Uploads(owners: owners, connection: try LoadConnection(port: port))
        // Warms up, then measures uploads that wake no stream.
        for _ in 0..<rounds { try uploads.round() }
        let quiet = try cpu(of: process) { for _ in 0..<rounds { try uploads.round() } }

        let before = try Meter.residentMemory(of: process)
        let watchers = try (0..<count).map { index in
            let watcher = try Watcher(port: port, owner: owners[index % owners.count])
            bar.advance()
            return watcher
        }
        for watcher in watchers { try watcher.waitForHead() }
        let after = try Meter.residentMemory(of: process)

        var woken = 0
        let busy = try cpu(of: process) {
            for _ in 0..<rounds {
                try uploads.round()
                for watcher in watchers {
                    try watcher.waitForHead()
                    woken += 1
                }
                bar.advance(by: watchers.count)
            }
        }
        var result = FigureResult(measures: [
            Measure(
                "memory_per_stream", Double(after - before) / Double(count) / 1024, "KiB", target: .atMost(12)),
            Measure(
                "server_cpu_per_waking", max(0, busy - quiet) / Double(count * rounds) / 1e6, "ms",
                target: .atMost(0.3), aim: 0.05),
            Measure("streams", Double(count), ""),
        ])
        result.othersShare = try meter.usage().othersShare
        result.checks = [Check(name: "wakings", expected: count * rounds, found: woken)]
        return result
    }

    private func cpu(of process: Int32, _ body: () throws -> Void) throws -> Double {
        let before = try SystemCall.cpuNanoseconds(of: process)
        try body()
        return Double(try SystemCall.cpuNanoseconds(of: process) - before)
    }

    /// Uploads one change of every owner and waits until it can be pulled.
    private struct Uploads {
        let owners: [String]
        let connection: LoadConnection
        private var rows = Workload.Rows(seed: 6)
        private var batch = 0

        init(owners: [String], connection: LoadConnection) {
            self.owners = owners
            self.connection = connection
        }

        mutating func round() throws {
            batch += 1
            for owner in owners {
                let requests = Requests(owner: owner, device: "k1")
                try connection.exchange(requests.upload(batch: batch, of: [rows.next()]), expecting: 202)
                try Upload.waitForOutcome(requests.pull(including: batch), on: connection)
            }
        }
    }

    private final class Watcher {
        private let connection: LoadConnection
        private var received: [UInt8] = []

        init(port: UInt16, owner: String) throws {
            connection = try LoadConnection(port: port)
            try connection.send(Requests(owner: owner, device: "watcher").watch())
        }

        /// Reads up to the next head.
        func waitForHead() throws {
            while true {
                if let head = received.firstRange(of: "event: head\n", from: 0),
                    let end = received.firstRange(of: "\n\n", from: head.upperBound)
                {
                    received.removeSubrange(..<end.upperBound)
                    return
                }
                received += try connection.receiveBytes(atMost: 1024)
            }
        }
    }
}
