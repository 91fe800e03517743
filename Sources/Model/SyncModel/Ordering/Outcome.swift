/// The result of one change.
package struct ChangeResult: Sendable, Hashable {
    package enum Status: Sendable, Hashable {
        /// A row was written, or there was nothing to delete (then possibly with zeros and no device).
        case applied(timeStamp: TimeStamp, version: Int64, knowledgeID: KnowledgeID?)
        /// The values were stored; the row remains deleted (I8).
        case deleted(timeStamp: TimeStamp, version: Int64, knowledgeID: KnowledgeID)
        /// Not stored: the row has a version that the device had not seen, or a later `updatedAt`.
        case conflict
        /// Not stored.
        case refused(RefusalCode, message: String)

        /// Whether the change was not stored; the answer then shows the server's row.
        package var isRejected: Bool {
            switch self {
            case .applied, .deleted: false
            case .conflict, .refused: true
            }
        }

        /// The row's after the change; `nil` where the change was not stored.
        package var timeStamp: TimeStamp? {
            switch self {
            case .applied(let timeStamp, _, _), .deleted(let timeStamp, _, _): timeStamp
            case .conflict, .refused: nil
            }
        }

        /// Whether the change was refused for the rows before it, without a look at its own.
        package var isBatchRowsTooLarge: Bool {
            if case .refused(.batchRowsTooLarge, _) = self { true } else { false }
        }
    }

    /// The index in the request, from 0.
    package let index: Int
    /// The table's index in the schema.
    package let table: Int
    package let id: RowID
    package var status: Status
    /// The least vector entry with which the sending device holds the row's current version; `nil` when no entry does
    /// (I6).
    ///
    /// Zero when the part's last change of the row wrote every column and no value was altered; the row's timeStamp
    /// before the batch when it wrote some columns. All results that wrote the row have the same value.
    package var heldFrom: TimeStamp?
    /// With a conflict or a refusal: the row's position after the part, from which its current version is found; `nil`
    /// when there was no such row, and with ``RefusalCode/batchRowsTooLarge``.
    package var locator: RowLocator?

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

/// The outcome of one owner's part of a batch; stored for the newest 16 batches of a device (I2).
package struct Outcome: Sendable, Hashable {
    /// The number of outcomes stored per device and owner.
    package static let keptPerDevice = 16

    package var batch: Int64
    /// SHA-256 of the batch's content; detects different content under the same number.
    package var contentHash: [UInt8]
    /// The partition's newest timeStamp after the part.
    package var timeStamp: TimeStamp
    /// One per admitted change, in the request's order.
    package var results: [ChangeResult]
    /// Part 0 only.
    package var summary: BatchSummary?

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

/// Why a whole batch applied nothing; the answer is 200 with `refused`.
package enum BatchRefusal: String, Sendable, Hashable, CaseIterable {
    /// The number was used before with different content.
    case batchMismatch = "batch_mismatch"
    /// A number below the newest whose outcome is no longer stored.
    case outcomeExpired = "outcome_expired"
    /// The batch has a different epoch.
    case historyChanged = "history_changed"
}

/// The decision on one part of `changes`.
package enum OrderingDecision: Sendable, Hashable {
    case ordered(results: [ChangeResult], summary: BatchSummary?)
    /// A repeat: the first outcome applies; it is stored under the batch number.
    case repeated(Outcome)
    /// Nothing was applied.
    case refused(BatchRefusal)
}

/// A device's progress with one owner, as needed for one batch.
package struct DeviceProgress: Sendable, Hashable {
    /// 0 before the first batch.
    package var highestBatch: Int64
    /// The outcome of the requested batch, if it is among the newest 16.
    package var outcome: Outcome?

    /// By default the progress of an unknown device.
    package init(highestBatch: Int64 = 0, outcome: Outcome? = nil) {
        self.highestBatch = highestBatch
        self.outcome = outcome
    }
}
