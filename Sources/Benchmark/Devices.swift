import Commands
import SyncModel

/// Owners whose names fall evenly into the partitions of a history with the default number of them.
enum Owners {
    static let partitions = 4

    /// So many owners; the one at an index lives in the partition `index % partitions`.
    static func spread(_ count: Int, prefix: String = "owner") -> [String] {
        let partitioning = Partitioning(count: partitions)
        var names: [String] = []
        var number = 0
        while names.count < count {
            number += 1
            let name = "\(prefix)\(number)"
            guard let id = SyncID(name), partitioning.partition(of: id) == names.count % partitions else { continue }
            names.append(name)
        }
        return names
    }
}

/// Devices that upload batches, each of an owner of its own, as fast as the server acknowledges them.
struct Devices: Sendable {
    /// What one device sends, made beforehand.
    struct Plan: Sendable {
        /// Its requests, in their order.
        let uploads: [[UInt8]]
        /// A pull that the server answers once the last of them can be pulled.
        let last: [UInt8]
    }

    let owners: [String]
    let batchSize: Int
    /// The number of the batch that each sends next.
    private(set) var nextBatch = 1

    init(owners: [String], batchSize: Int) {
        self.owners = owners
        self.batchSize = batchSize
    }

    /// The rows that a device sends from one batch on, the same whenever they are asked for.
    static func rows(device: Int, firstBatch: Int) -> Workload.Rows {
        Workload.Rows(seed: UInt64(device + 1) << 40 | UInt64(firstBatch))
    }

    /// Makes what all devices send in the next repetition, and its first batch number.
    mutating func plan(batches: Int) async throws -> (plans: [Plan], firstBatch: Int) {
        let firstBatch = nextBatch
        nextBatch += batches
        let (owners, batchSize) = (owners, batchSize)
        let plans = try await LoadThreads.run(owners.count) { device in
            let requests = Requests(owner: owners[device], device: "k1")
            var rows = Self.rows(device: device, firstBatch: firstBatch)
            let uploads = (0..<batches).map { batch in
                requests.upload(batch: firstBatch + batch, of: (0..<batchSize).map { _ in rows.next() })
            }
            return Plan(uploads: uploads, last: requests.pull(including: firstBatch + batches - 1))
        }
        return (plans, firstBatch)
    }

    /// Sends everything, all devices at once, and waits until all of it can be pulled; the seconds it took.
    static func upload(_ plans: [Plan], to server: ServerProcess, _ bar: ProgressBar, batchSize: Int) async throws
        -> Double
    {
        let port = server.port
        let times = try await LoadThreads.run(plans.count) { device in
            let connection = try LoadConnection(port: port)
            let start = SystemCall.nanoseconds()
            for request in plans[device].uploads {
                try connection.exchange(request, expecting: 202)
                bar.advance(by: batchSize)
            }
            try waitForOutcome(plans[device].last, on: connection)
            return (start: start, end: SystemCall.nanoseconds())
        }
        let start = times.map(\.start).min() ?? 0
        return Double((times.map(\.end).max() ?? 0) - start) / 1e9
    }

    /// Pulls until the batch that the pull includes is there.
    private static func waitForOutcome(_ pull: [UInt8], on connection: LoadConnection) throws {
        // Each attempt waits ten seconds in the server.
        for _ in 0..<60 {
            let isThere = try connection.exchange(pull) { status, body in
                if status == 504 { return false }
                try LoadConnection.check(status, body, 200)
                return true
            }
            if isThere { return }
        }
        throw BenchmarkFailure("a batch that was acknowledged could not be pulled within ten minutes")
    }
}
