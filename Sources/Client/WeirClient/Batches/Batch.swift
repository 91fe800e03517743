/// A batch of changes, numbered and frozen: the bytes that are sent until the server has answered.
package struct Batch: Equatable, Sendable {
    package let number: Int64
    /// How many changes it has.
    package let changes: Int
    /// The JSON body of `POST /v1/upload`.
    package let body: [UInt8]
}

/// The result of freezing: a batch, if there was anything to send, and what stays pending because it cannot be sent.
package struct FrozenBatch: Equatable, Sendable {
    /// How many held edits are described.
    static let mostHeld = 100

    package var batch: Batch?
    /// The first of the held edits.
    package var held: [HeldEdit] = []
    package var heldCount = 0
    /// Tables whose edits wait until the server has the table.
    package var unknownTables: Set<String> = []
    /// Columns whose changes wait until the server has the column, by table.
    package var unknownColumns: [String: Set<String>] = [:]
    /// Whether the batch was frozen before, when the rest was found.
    let isRepeat: Bool

    init(repeating batch: Batch? = nil) {
        self.batch = batch
        isRepeat = batch != nil
    }
}

/// An edit that stays pending since it cannot be sent as it is.
package struct HeldEdit: Equatable, Sendable {
    package let table: String
    /// The row's key as an SQL literal.
    package let key: String
    package let reason: String
}

/// What freezing needs to know of the server.
package struct BatchSession: Sendable {
    /// This device.
    package let knowledgeID: String
    /// The account whose token the batch is sent with; `nil` for a file without one.
    package let account: SessionRecord.Account?
    package let schema: ServerSchema
    package let limits: BatchLimits

    package init(
        knowledgeID: String, account: SessionRecord.Account? = nil, schema: ServerSchema, limits: BatchLimits
    ) {
        self.knowledgeID = knowledgeID
        self.account = account
        self.schema = schema
        self.limits = limits
    }
}

/// How much a batch may have.
package struct BatchLimits: Sendable {
    /// The server's `maxChanges`.
    package let changes: Int
    /// The bytes of the body: the server's `maxBatchBytes`, less what else the request has.
    package let bytes: Int
    /// The bytes of a body that may be divided: of more than one change, or of more than one group of them.
    let divisibleBytes: Int

    package init(changes: Int, bytes: Int) { self.init(changes: changes, bytes: bytes, sizes: BatchSizes()) }

    init(changes: Int, bytes: Int, sizes: BatchSizes) {
        self.changes = changes
        self.bytes = min(bytes, sizes.greatest)
        divisibleBytes = min(self.bytes, sizes.greatestDivisible)
    }
}

/// What is known of the sizes that arrive, where something before the server takes less than the server's schema says, such as a proxy.
///
/// It is kept as long as the process has the file attached: a proxy says nothing of its limit, nor when it is another one.
struct BatchSizes {
    private(set) var greatest = Int.max
    private(set) var greatestDivisible = Int.max

    /// A batch was too large: the next ones have half of its size at most.
    ///
    /// One that cannot be divided is not sent again.
    mutating func exclude(_ batch: Batch) {
        let isDivisible = batch.changes > 1 && batch.body.count <= greatestDivisible
        if isDivisible { greatestDivisible = batch.body.count / 2 } else { greatest = batch.body.count - 1 }
    }
}
