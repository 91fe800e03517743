/// What became of one change.
package struct ChangeResult: Sendable, Hashable {
    /// What became of it.
    package enum Status: Sendable, Hashable {
        /// It holds: a row was written, or nothing was left to delete (then possibly zeros and no device).
        case applied(timeStamp: TimeStamp, version: Int64, knowledgeID: KnowledgeID?)
        /// The values were stored, the row is and stays deleted (I8).
        case deleted(timeStamp: TimeStamp, version: Int64, knowledgeID: KnowledgeID)
        /// Not stored: the row has a version that the change had not seen, or a later `updatedAt`.
        case conflict
        /// Not stored.
        case refused(RefusalCode, message: String)

        /// Whether something stands against the change: the answer shows the row instead.
        package var isRejected: Bool {
            switch self {
            case .applied, .deleted: false
            case .conflict, .refused: true
            }
        }
    }

    /// The position in the request, from 0.
    package let index: Int
    /// The position of the table in the schema.
    package let table: Int
    /// The row: with a conflict or a refusal the answer shows it as it stands, where there was one.
    package let id: RowID
    /// What became of it.
    package var status: Status
    /// The least vector entry with which the device that sent this holds the row as it now stands; `nil`: no entry does (I6).
    ///
    /// Zero when the part's last change of the row wrote every column and none was altered; the row's timeStamp before the
    /// batch when it wrote some. All results that wrote the row say the same.
    package var heldFrom: TimeStamp?
    /// With a conflict or a refusal: where the row stood after the part, from where on it is found as it stands now; `nil`
    /// when there was none.
    package var locator: RowLocator?

    /// States a result.
    package init(
        index: Int, table: Int, id: RowID, status: Status, heldFrom: TimeStamp? = nil, locator: RowLocator? = nil
    ) {
        self.index = index
        self.table = table
        self.id = id
        self.status = status
        self.heldFrom = heldFrom
        self.locator = locator
    }
}

/// What became of one owner's part of a batch; kept for the newest 16 batches of a device (I2).
package struct Outcome: Sendable, Hashable {
    /// How many a device's progress keeps with each owner.
    package static let keptPerDevice = 16

    /// The device's batch number.
    package var batch: Int64
    /// SHA-256 of the batch's content, by which other content under the same number is told apart.
    package var contentHash: [UInt8]
    /// The newest timeStamp of the partition after the part: what came later is above it.
    package var timeStamp: TimeStamp
    /// One for each admitted change, in the request's order.
    package var results: [ChangeResult]
    /// Part 0 only: what the whole batch held.
    package var summary: BatchSummary?

    /// Makes an outcome.
    package init(
        batch: Int64, contentHash: [UInt8], timeStamp: TimeStamp, results: [ChangeResult], summary: BatchSummary? = nil
    ) {
        self.batch = batch
        self.contentHash = contentHash
        self.timeStamp = timeStamp
        self.results = results
        self.summary = summary
    }
}

/// Why a whole batch applied nothing; answered with 200 as `refused`.
package enum BatchRefusal: String, Sendable, Hashable, CaseIterable {
    /// The number was used before with other content.
    case batchMismatch = "batch_mismatch"
    /// A number below the newest whose outcome is no longer kept.
    case outcomeExpired = "outcome_expired"
    /// The device's epoch is another history's.
    case historyChanged = "history_changed"
}

/// What one message of `changes` came to.
package enum OrderingDecision: Sendable, Hashable {
    /// Ordered now.
    case ordered(results: [ChangeResult], summary: BatchSummary?)
    /// Sent before: the first outcome counts, and is found under its number.
    case repeated(Outcome)
    /// Nothing applied.
    case refused(BatchRefusal)
}

/// A device's progress with one owner, as far as one batch needs it.
package struct DeviceProgress: Sendable, Hashable {
    /// The highest batch number seen, 0 before the first.
    package var highestBatch: Int64
    /// The outcome of the batch asked for, where it is among the newest 16.
    package var outcome: Outcome?

    /// Makes a progress; that of a device never seen by default.
    package init(highestBatch: Int64 = 0, outcome: Outcome? = nil) {
        self.highestBatch = highestBatch
        self.outcome = outcome
    }
}
