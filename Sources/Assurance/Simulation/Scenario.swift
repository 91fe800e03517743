import ChangeLog
import SyncModel
import SyncWire

/// What a seed makes of the world: how many of everything, how large, how orderly.
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
    /// Rows that devices work on, of each owner and table: few, so that they meet.
    let rowCount: Int
    /// The longest that a message takes on its way.
    let longestTravel: Duration
    let schema: Schema

    init(_ dice: SeededGenerator) {
        partitions = dice.number(1...3)
        owners = ["anna", "berta", "clara", "dora"].prefix(dice.number(2...4)).map { SyncID(unchecked: $0) }
        devicesOfOwner = dice.number(1...3)
        gateways = dice.number(1...2)
        ingests = dice.number(1...2)
        orderings = dice.number(1...2)
        fanOuts = dice.number(1...2)
        clock = dice.once(in: 4) ? .sequence(first: 100) : .logTime
        pieceSize = dice.pick([256, 700, 512 << 10])
        stepBytes = dice.pick([1024, 16 << 10, 1 << 20])
        overlayBytes = dice.pick([1024, 8192, 16 << 20])
        batchBytes = dice.pick([1, 2000, 1 << 20])
        recentResults = dice.pick([1, 8, 8192])
        pageLimit = dice.pick([1, 2, 5, 1000])
        pageBytes = dice.pick([1024, 4 << 20])
        rowCount = dice.number(2...8)
        longestTravel = dice.pick([.zero, .milliseconds(2), .milliseconds(40), .milliseconds(800)])
        schema = Self.tables
    }

    /// Every policy, and the types whose canonical form may differ from what is sent.
    private static let tables = Schema(tables: [
        Table(
            name: "note",
            columns: [
                Column(name: "title", type: .text, isNullable: false, maximumLength: 40),
                Column(name: "count", type: .integer, isNullable: false, defaultValue: Array("0".utf8)),
                Column(name: "price", type: .decimal(precision: 8, scale: 2)),
                Column(name: "extra", type: .json),
            ]),
        Table(
            name: "status", policy: .lastWriteWins,
            columns: [
                Column(name: "done", type: .boolean),
                Column(name: "due", type: .timestamp),
                Column(name: "share", type: .real),
            ]),
        Table(
            name: "account", policy: .checkBase,
            columns: [
                Column(name: "balance", type: .integer),
                Column(name: "opened", type: .date),
                Column(name: "key", type: .uuid),
                Column(name: "photo", type: .bytes),
            ]),
    ])

    var history: History {
        History(epoch: "0123456789abcdef0123456789abcdef", partitions: partitions, clock: clock, pieceSize: pieceSize)
    }

    var schemas: SchemaHistory {
        var history = SchemaHistory()
        history.append(.init(version: SchemaVersion(ordinal: 1, of: schema), schema: schema))
        return history
    }
}
