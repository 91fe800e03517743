import Commands
import LoadTools

/// Whether memory stays flat while devices upload and pull for a long time.
struct Soak: Figure {
    let name = "soak"
    let title = "memory while devices upload and pull at a steady rate"

    private static let threads = 4
    private static let devices = 2
    /// Changes of a batch.
    private static let batchSize = 20
    /// After as many batches each device uploads the same rows again: the tables stop growing, the log does not.
    private static let distinctBatches = 4
    /// Nanoseconds between two batches of a thread: 2,000 changes a second in all.
    private static let interval: Int64 = 40_000_000

    func measure(_ bench: Bench) async throws -> FigureResult {
        let owners = Owners.spread(bench.scale.pick(8, 400, 1000))
        let seconds = bench.soakSeconds
        let batches = seconds * 25
        return try await bench.withServer(name) { server in
            try await bench.showing(name, total: Self.threads * batches, unit: "batches") { bar in
                let meter = try server.meter()
                let port = server.port
                let start = SystemCall.nanoseconds() + 200_000_000
                // The last thread reads the memory, the others are the devices.
                let results = try await LoadThreads.run(Self.threads + 1) { index in
                    index == Self.threads
                        ? Outcome(memory: try watch(server, from: start, seconds: seconds))
                        : try Devices(index, of: Self.threads, owners: owners, port: port).run(
                            batches, from: start, bar)
                }
                var result = try Self.result(results, parts: server.parts.map(\.name))
                result.othersShare = try meter.usage().othersShare
                let expected = results.compactMap(\.rowsOfFirst).reduce(0, +)
                let found = try await Drain.count(of: owners[0], on: server)
                result.checks = [Check(name: "rows of an owner", expected: expected, found: found)]
                return result
            }
        }
    }

    private struct Outcome: Sendable {
        /// The memory of each of the server's processes in bytes, second by second.
        var memory: [[Int]] = []
        var changes = 0
        var seconds = 0.0
        /// Devices that have uploaded.
        var pairs = 0
        /// Different rows that were uploaded to the first of all owners.
        var rowsOfFirst: Int?
    }

    private func watch(_ server: ServerProcess, from start: Int64, seconds: Int) throws -> [[Int]] {
        try (0...seconds).map { second in
            SystemCall.wait(until: start + Int64(second) * 1_000_000_000)
            return try server.parts.map { try Meter.residentMemory(of: $0.process) }
        }
    }

    private static func result(_ outcomes: [Outcome], parts: [String]) throws -> FigureResult {
        let looks = outcomes.flatMap(\.memory)
        let pairs = outcomes.reduce(0) { $0 + $1.pairs }
        let rates = outcomes.filter { $0.seconds > 0 }.map { Double($0.changes) / $0.seconds }
        var result = FigureResult(measures: [])
        for (index, part) in parts.enumerated() {
            result.measures += measures(
                of: looks.map { Double($0[index]) / 1e6 }, parts.count == 1 ? "" : part + "_", pairs: pairs)
        }
        result.measures += [
            Measure("pairs", Double(pairs)), Measure("changes_per_second", rates.reduce(0, +), "/s"),
        ]
        return result
    }

    private static func measures(of memory: [Double], _ prefix: String, pairs: Int) -> [Measure] {
        [
            Measure(
                prefix + "memory_highest", memory.max() ?? 0, "MB",
                target: .atMost(150 + Double(pairs) * 100 / 1e6)),
            Measure(prefix + "memory_first", memory.first ?? 0, "MB"),
            Measure(prefix + "memory_last", memory.last ?? 0, "MB"),
            // Ten minutes: caches fill in the first half. A shorter run has no target.
            Measure(
                prefix + "memory_slope", slope(Array(memory[(memory.count / 2)...])) * 60, "MB/min",
                target: memory.count > 600 ? .atMost(1) : nil),
        ]
    }

    /// The growth from one number to the next, by least squares.
    private static func slope(_ values: [Double]) -> Double {
        guard values.count > 1 else { return 0 }
        let middle = Double(values.count - 1) / 2
        let mean = values.reduce(0, +) / Double(values.count)
        var (product, square) = (0.0, 0.0)
        for (index, value) in values.enumerated() {
            product += (Double(index) - middle) * (value - mean)
            square += (Double(index) - middle) * (Double(index) - middle)
        }
        return product / square
    }

    private struct Devices {
        private struct Device {
            let requests: Requests
            let seed: UInt64
            var batches = 0
            /// The head of its last drained pull.
            var floor = 0
        }

        private let connection: LoadConnection
        private let hasFirstOwner: Bool
        private var devices: [Device] = []

        init(_ index: Int, of threads: Int, owners: [String], port: UInt16) throws {
            connection = try LoadConnection(port: port)
            hasFirstOwner = index == 0
            for owner in stride(from: index, to: owners.count, by: threads) {
                for device in 0..<Soak.devices {
                    let seed = UInt64(owner) << 20 | UInt64(device) << 16
                    devices.append(
                        Device(requests: Requests(owner: owners[owner], device: "k\(device)"), seed: seed))
                }
            }
        }

        /// Uploads a batch of the next device and pulls what others wrote, `batches` times; late ones are not skipped.
        consuming func run(_ batches: Int, from start: Int64, _ bar: ProgressBar) throws -> Outcome {
            for number in 0..<batches {
                SystemCall.wait(until: start + Int64(number) * Soak.interval)
                let index = number % devices.count
                devices[index] = try step(devices[index])
                bar.advance()
            }
            let used = devices.prefix(batches)
            for device in used {
                try Upload.waitForOutcome(device.requests.pull(including: device.batches), on: connection)
            }
            let first = devices.prefix(Soak.devices).reduce(0) {
                $0 + min($1.batches, Soak.distinctBatches) * Soak.batchSize
            }
            return Outcome(
                changes: batches * Soak.batchSize, seconds: SystemCall.seconds(since: start),
                pairs: used.count, rowsOfFirst: hasFirstOwner ? first : nil)
        }

        /// Uploads a batch of one device and pulls for it; returns its new state.
        private func step(_ before: Device) throws -> Device {
            var device = before
            var rows = Workload.Rows(seed: device.seed | UInt64(device.batches % Soak.distinctBatches))
            device.batches += 1
            let upload = device.requests.upload(
                batch: device.batches, of: (0..<Soak.batchSize).map { _ in rows.next() })
            try connection.exchange(upload, expecting: 202)
            let floor = device.floor
            device.floor = try connection.exchange(device.requests.pull(above: floor, limit: 1000)) { status, body in
                try LoadConnection.check(status, body, 200)
                let answer = try PullAnswer(body)
                return answer.hasMore ? floor : answer.head
            }
            return device
        }
    }
}
