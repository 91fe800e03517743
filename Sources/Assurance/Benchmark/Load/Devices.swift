import LoadTools
import SyncModel

/// Owners whose names are spread evenly over the default number of partitions.
enum Owners {
    static let partitions = 4

    /// The owner at an index is in partition `index % partitions`.
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

/// Devices, each of an owner of its own, that upload batches as fast as the server acknowledges them.
struct Devices: Sendable {
    let owners: [String]
    let batchSize: Int
    let ids: Workload.IDs
    let hasChangeIDs: Bool
    /// The number of the batch that each device uploads next.
    private(set) var nextBatch = 1

    init(owners: [String], batchSize: Int, ids: Workload.IDs = .random, hasChangeIDs: Bool = false) {
        self.ids = ids
        self.hasChangeIDs = hasChangeIDs
        self.owners = owners
        self.batchSize = batchSize
    }

    /// The rows that a device uploads from one batch on; the same with each call.
    func rows(device: Int, firstBatch: Int) -> Workload.Rows {
        Workload.Rows(
            seed: UInt64(device + 1) << 40 | UInt64(firstBatch), ids: ids, moment: UInt64(firstBatch * batchSize))
    }

    /// Encodes the next uploads of all devices; also returns the number of their first batch.
    mutating func plan(batches: Int) async throws -> (plans: [UploadPlan], firstBatch: Int) {
        let firstBatch = nextBatch
        nextBatch += batches
        let sources = owners.indices.map { rows(device: $0, firstBatch: firstBatch) }
        let (owners, batchSize, hasChangeIDs) = (owners, batchSize, hasChangeIDs)
        let plans = try await LoadThreads.run(owners.count) { device in
            let requests = Requests(owner: owners[device], device: "k1")
            var rows = sources[device]
            let uploads = (0..<batches).map { batch in
                let batchRows = (0..<batchSize).map { _ in
                    var row = rows.next()
                    // Each row is written once, so its id is one of the change, too.
                    if hasChangeIDs { row.changeID = row.id }
                    return row
                }
                return requests.upload(batch: firstBatch + batch, of: batchRows)
            }
            return UploadPlan(
                uploads: uploads, last: [requests.pull(including: firstBatch + batches - 1)], batchSize: batchSize)
        }
        return (plans, firstBatch)
    }
}
