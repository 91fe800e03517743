import Commands
import LoadTools
import SyncModel

/// A server with rows of many owners, and changes of owners that are picked at random.
struct Population: Sendable {
    let server: ServerProcess
    private let owners: Int
    private let rowsOfOwner: Int
    /// The number of each owner's next batch.
    private var nextBatch: [Int]
    private var random = Workload.Rows(seed: 7)
    /// How many rows the first owner must have by now.
    private(set) var changesOfFirstOwner: Int

    /// - Parameter owners: at least as many as connections upload.
    init(server: ServerProcess, owners: Int, rows: Int) {
        self.server = server
        self.owners = owners
        rowsOfOwner = rows / owners
        nextBatch = [Int](repeating: 1, count: owners)
        changesOfFirstOwner = rowsOfOwner
    }

    fileprivate static func requests(_ owner: Int) -> Requests { Requests(owner: "owner\(owner)", device: "k1") }

    /// Uploads the rows; each is made when it is sent, since all do not fit into memory.
    mutating func load(_ bar: ProgressBar) async throws {
        let connections = 8
        let size = min(200, rowsOfOwner)
        let (owners, rowsOfOwner, port) = (owners, rowsOfOwner, server.port)
        _ = try await LoadThreads.run(connections) { index in
            let connection = try LoadConnection(port: port)
            var ends = Ends()
            var rows = Workload.Rows(seed: UInt64(index + 1) << 48)
            for owner in stride(from: index, to: owners, by: connections) {
                let requests = Self.requests(owner)
                for (number, first) in stride(from: 0, to: rowsOfOwner, by: size).enumerated() {
                    let count = min(size, rowsOfOwner - first)
                    let upload = requests.upload(batch: number + 1, of: (0..<count).map { _ in rows.next() })
                    try connection.exchange(upload, expecting: 202)
                    bar.advance(by: count)
                }
                ends.record(owner, (rowsOfOwner + size - 1) / size)
            }
            for pull in ends.pulls { try Upload.waitForOutcome(pull, on: connection) }
        }
        let batches = (rowsOfOwner + size - 1) / size
        for owner in nextBatch.indices { nextBatch[owner] = batches + 1 }
    }

    /// Uploads new rows to owners that are picked at random.
    mutating func upload(
        _ shape: (connections: Int, uploads: Int, size: Int), _ bar: ProgressBar
    ) async throws -> Repetition {
        let plans = (0..<shape.connections).map { plan($0, shape) }
        let meter = try server.meter()
        let seconds = try await Upload.run(plans, to: server, bar)
        return Repetition(
            count: shape.connections * shape.uploads * shape.size, seconds: seconds, usage: try meter.usage())
    }

    /// The uploads of one connection, which has owners of its own, so that no device sends two batches at the same time.
    private mutating func plan(
        _ index: Int, _ shape: (connections: Int, uploads: Int, size: Int)
    ) -> UploadPlan {
        let mine = (owners - index + shape.connections - 1) / shape.connections
        var uploads: [[UInt8]] = []
        var ends = Ends()
        for _ in 0..<shape.uploads {
            let owner = index + shape.connections * Int(random.number() % UInt64(mine))
            let batch = nextBatch[owner]
            nextBatch[owner] += 1
            if owner == 0 { changesOfFirstOwner += shape.size }
            let rows = (0..<shape.size).map { _ in random.next() }
            uploads.append(Self.requests(owner).upload(batch: batch, of: rows))
            ends.record(owner, batch)
        }
        return UploadPlan(uploads: uploads, last: ends.pulls, batchSize: shape.size)
    }

    /// The newest batch in each partition: when it can be pulled, all before it can.
    private struct Ends {
        private static let partitioning = Partitioning(count: Owners.partitions)
        private var newest: [Int: (owner: Int, batch: Int)] = [:]

        mutating func record(_ owner: Int, _ batch: Int) {
            guard let id = SyncID(Population.requests(owner).owner) else { return }
            newest[Self.partitioning.partition(of: id)] = (owner, batch)
        }

        /// Pulls that the server answers once it has these batches.
        var pulls: [[UInt8]] {
            newest.values.map { Population.requests($0.owner).pull(including: $0.batch) }
        }
    }

    /// How many rows the first owner has on the server.
    func countFirstOwner() async throws -> Int { try await Drain.count(of: "owner0", on: server) }
}
