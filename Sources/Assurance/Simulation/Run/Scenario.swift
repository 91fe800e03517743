import ChangeLog
import DeviceModel
import Ingest
import SyncModel
import SyncWire

/// The settings of a run, chosen by its seed.
struct Scenario {
    let partitions: Int
    let owners: [SyncID]
    let devicesOfOwner: Int
    let gateways: Int
    let ingests: Int
    let orderings: Int
    let fanOuts: Int
    let clock: TimeStampClock
    let pieceSize: Int
    let stepBytes: Int
    let overlayBytes: Int
    let batchBytes: Int
    let recentResults: Int
    let pageLimit: Int
    let pageBytes: Int
    /// How long a gateway waits for an outcome.
    let outcomeWait: Duration
    /// The largest request.
    let maxBatchBytes = 64 << 10
    /// The size of the rows that a batch may change; small in some runs, so that few rows reach it.
    let maxBatchRowBytes: Int
    /// The quota of an owner; small in some runs, so that few rows exceed it.
    let maxOwnerRows: Int
    let maxOwnerBytes: Int
    /// Whether devices give their changes ids, and send some changes again.
    let hasChangeIDs: Bool
    /// The size of the rows that ordering reads for a step; small in some runs, so that it reads those of a part in several lookups.
    let stepRowBytes: Int
    /// Requests of a gateway that may wait at a time.
    let maxWaiting: Int
    /// Above it ingest checks a step on a thread of its own; in half of the runs each.
    let largeStepBytes: Int
    /// Of one caller, at a gateway.
    let uploadBytesInFlight: Int
    /// Of one caller, at a gateway; 0: any number.
    let changesPerSecond: Int
    /// The size of all pages that a gateway may read at a time.
    let answerBytesInFlight: Int
    /// How long an upload may wait until it can be pulled; `nil`: any time.
    let maxLag: Duration?
    /// Rows of each owner and table that devices edit; few, so that edits conflict.
    let rowCount: Int
    /// The longest delay of a request or an answer.
    let longestDelay: Duration
    /// The schema versions, which are registered one after the other while devices work; one in half of the runs.
    let versions: [Schema]
    /// By number.
    let schemas: SchemaHistory

    /// The newest version, which has all tables and columns.
    var schema: Schema { versions[versions.count - 1] }

    init(_ random: SeededGenerator) {
        partitions = random.number(1...3)
        owners = ["anna", "berta", "clara", "dora"].prefix(random.number(2...4)).map { SyncID(unchecked: $0) }
        devicesOfOwner = random.number(1...3)
        gateways = random.number(1...2)
        ingests = random.number(1...2)
        orderings = random.number(1...2)
        fanOuts = random.number(1...2)
        clock = random.once(in: 4) ? .sequence(first: 100) : .logTime
        pieceSize = random.pick([256, 700, 512 << 10])
        stepBytes = random.pick([1024, 16 << 10, 1 << 20])
        overlayBytes = random.pick([1024, 8192, 16 << 20])
        batchBytes = random.pick([1, 2000, 1 << 20])
        recentResults = random.pick([1, 8, 8192])
        pageLimit = random.pick([1, 2, 5, 1000])
        pageBytes = random.pick([300, 1024, 4 << 20])
        outcomeWait = .seconds(random.pick([2, 10, 40]))
        maxWaiting = random.pick([3, 20_000, 20_000])
        uploadBytesInFlight = random.pick([1, 32 << 20, 32 << 20])
        changesPerSecond = random.pick([0, 0, 1])
        answerBytesInFlight = random.pick([pageBytes, 64 << 20])
        maxLag = random.pick([nil, nil, .seconds(2)])
        rowCount = random.pick([1, 2, 4, 8])
        longestDelay = random.pick([.zero, .milliseconds(2), .milliseconds(40), .milliseconds(800)])
        let sizes = random.branch()
        maxBatchRowBytes = sizes.once(in: 4) ? sizes.number(10...120) : OutcomeLimits().maxBatchRowBytes
        hasChangeIDs = sizes.branch().once(in: 2)
        stepRowBytes = sizes.once(in: 3) ? sizes.number(1...150) : 8 << 20
        let quotas = sizes.branch()
        maxOwnerRows = quotas.once(in: 5) ? quotas.number(1...6) : quotas.once(in: 5) ? 0 : OutcomeLimits().maxOwnerRows
        maxOwnerBytes =
            quotas.once(in: 5) ? quotas.number(20...200) : quotas.once(in: 5) ? 0 : OutcomeLimits().maxOwnerBytes
        versions = quotas.once(in: 2) ? SimulatedSchema.versions : [SimulatedSchema.versions[0]]
        schemas = Self.history(of: versions)
        largeStepBytes = quotas.once(in: 2) ? 1 : IngestConfiguration().largeStepBytes
    }

    /// The first versions.
    func schemas(upTo count: Int) -> SchemaHistory { Self.history(of: Array(versions.prefix(count))) }

    private static func history(of versions: [Schema]) -> SchemaHistory {
        var history = SchemaHistory()
        for (index, schema) in versions.enumerated() {
            history.append(.init(version: SchemaVersion(ordinal: index + 1, of: schema), schema: schema))
        }
        return history
    }

    var history: History {
        History(epoch: "0123456789abcdef0123456789abcdef", partitions: partitions, clock: clock, pieceSize: pieceSize)
    }
}

/// Which faults a run has, and how often.
final class Faults: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    enum Kind {
        /// A request is lost and not carried out.
        case request
        /// A request is carried out and its answer lost.
        case answer
    }

    /// `false` at the end of a run.
    var areOn = true
    private let random: SeededGenerator
    /// One of so many requests, and of twice as many answers, is lost; `nil`: none.
    private let losses: Int?
    /// Steps between two faults of processes, log or tables on average; `nil`: there are none.
    let interval: Int?

    init(_ random: SeededGenerator) {
        self.random = random
        losses = random.pick([nil, 200, 60])
        interval = random.pick([nil, 800, 250, 80])
    }

    func strikes(_ kind: Kind) -> Bool {
        guard areOn, let losses else { return false }
        return random.once(in: kind == .request ? losses : losses * 2)
    }
}
