import SyncModel

/// The gateway's link to the fan-outs of the owners concerned: in one process a call, else a connection.
///
/// The gateway knows no stream and no log of results; this is all that it asks. Every call is bounded in time by the
/// caller, and none answers "drained" for an owner whose stream cannot be read.
package protocol FanOutLink: Sendable {
    /// Answers a pull that nothing moved for, at once and from memory; `nil` when it must be asked of ``pull(_:within:)``.
    func idlePage(_ request: OwnerPull) -> OwnerPage?

    /// Reads one page of each owner's stream, owner after owner, until the page's limits are reached.
    ///
    /// Where a vector names more than a stream has, or its last page was cut from a stream that had come further, this waits for
    /// the stream: at most `within`, then ``FanOutError/notReady(_:)``; if the log has no more either, the owner's page says
    /// so (``OwnerPage/Content/historyChanged``).
    func pull(_ request: PagePull, within: Duration) async throws(FanOutError) -> [OwnerPage]

    /// Waits for what became of one part of an upload, at most `within`, then ``FanOutError/pending``.
    func outcome(of part: PartReference, within: Duration) async throws(FanOutError) -> PartOutcome

    /// The outcome kept for a device's batch with an owner, waiting for one at most `within`; `nil` where none is by then.
    func keptOutcome(
        of batch: Int64, for key: DeviceKey, within: Duration
    ) async throws(FanOutError) -> PartOutcome?

    /// The newest timeStamp of each owner's stream, zero for an owner without rows.
    func heads(of owners: [SyncID]) async throws(FanOutError) -> [TimeStamp]

    /// Calls `moved` after each move of an owner's head, with the new head, until the subscription is cancelled.
    ///
    /// `moved` is called on the fan-out's own thread: it must only note the fact.
    func subscribe(to owners: [SyncID], moved: @escaping @Sendable (SyncID, TimeStamp) -> Void)
        -> any FanOutSubscription
}

/// Keeps a subscription alive.
package protocol FanOutSubscription: Sendable {
    /// Ends it; no call begins afterwards.
    func cancel()
}

/// A pull of one owner's stream.
package struct OwnerPull: Sendable, Hashable {
    /// The owner.
    package var owner: SyncID
    /// What the device holds of it.
    package var knowledge: OwnerKnowledge
    /// TimeStamps of rows that the device holds although its vector does not say so: results of the same answer (I6).
    package var held: Set<TimeStamp>

    /// Asks for what a device lacks.
    package init(owner: SyncID, knowledge: OwnerKnowledge, held: Set<TimeStamp> = []) {
        self.owner = owner
        self.knowledge = knowledge
        self.held = held
    }
}

/// A pull of several owners' streams into one page.
package struct PagePull: Sendable, Hashable {
    /// The owners, in the order of the answer.
    package var owners: [OwnerPull]
    /// The most rows in all, at least 1.
    package var limit: Int
    /// The size of the rows' JSON at which the page ends; one row is sent whatever its size.
    package var maximumBytes: Int
    /// Whether this is the rest of a page that holds rows already: both limits are then what is left of it, 0 and less
    /// included, and no row is sent beyond them.
    package var isContinued: Bool

    /// Asks for a page.
    package init(owners: [OwnerPull], limit: Int, maximumBytes: Int, isContinued: Bool = false) {
        self.owners = owners
        self.limit = limit
        self.maximumBytes = maximumBytes
        self.isContinued = isContinued
    }
}

/// What a page holds of one owner.
package struct OwnerPage: Sendable, Hashable {
    /// What there is of this owner.
    package enum Content: Sendable, Hashable {
        /// Rows, and the vector's entries after them.
        case rows(OwnerRows)
        /// The vector names more than the log ever had: the device must begin anew (I7).
        case historyChanged
    }

    /// The owner.
    package let owner: SyncID
    /// What there is of it.
    package let content: Content

    /// Makes an owner's part of a page.
    package init(owner: SyncID, content: Content) {
        self.owner = owner
        self.content = content
    }
}

/// Rows of one owner, in the order of their timeStamps.
package struct OwnerRows: Sendable, Hashable {
    /// The rows as the contract spells them, with commas between.
    package var json: [UInt8]
    /// How many.
    package var count: Int
    /// The entries that the device's vector has after these rows: every one it sent, never lower, and what is new (I7).
    package var entries: [(device: KnowledgeID, timeStamp: TimeStamp)]
    /// The stream's newest timeStamp, which a drained device holds; zero for an owner without rows.
    package var head: TimeStamp
    /// Whether the owner has rows that the device lacks and that this page does not hold.
    package var hasMore: Bool

    /// What the device must name with its next pull (``SyncModel/OwnerKnowledge/cutFrom``) if it named `known` with this one.
    ///
    /// - Returns: the head that this page was cut from; what was named before where the page left the vector as it was; `nil` for an
    ///   owner that is drained.
    package func cutFrom(known: TimeStamp?) -> TimeStamp? { hasMore ? count > 0 ? head : known : nil }

    /// Makes rows.
    package init(
        json: [UInt8] = [], count: Int = 0, entries: [(device: KnowledgeID, timeStamp: TimeStamp)] = [],
        head: TimeStamp = .zero, hasMore: Bool = false
    ) {
        self.json = json
        self.count = count
        self.entries = entries
        self.head = head
        self.hasMore = hasMore
    }

    /// Equal when all parts are.
    package static func == (left: Self, right: Self) -> Bool {
        left.json == right.json && left.count == right.count && left.head == right.head
            && left.hasMore == right.hasMore && left.entries.elementsEqual(right.entries) { $0 == $1 }
    }

    /// Hashes what most differs.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(json)
        hasher.combine(head)
    }
}

/// Names one owner's part of an upload.
package struct PartReference: Sendable, Hashable {
    /// The record of `uploads`.
    package var upload: UploadReference
    /// The part, 0 for the caller's own.
    package var part: Int
    /// Whose part, and which device's.
    package var key: DeviceKey
    /// The device's batch number.
    package var batch: Int64?

    /// Names a part.
    package init(upload: UploadReference, part: Int, key: DeviceKey, batch: Int64?) {
        self.upload = upload
        self.part = part
        self.key = key
        self.batch = batch
    }
}

/// What became of one owner's part of a batch, with the rows that its answer shows.
package struct PartOutcome: Sendable, Hashable {
    /// Why nothing was applied; `nil` when the results tell.
    package var refusal: BatchRefusal?
    /// Whether the batch had been sent before: the first outcome, which leaves nothing out of a pull (I6).
    package var isRepeat: Bool
    /// One for each admitted change.
    package var results: [ChangeResult]
    /// Part 0 only.
    package var summary: BatchSummary?
    /// The server's rows for conflicts and refusals, by the change's position, as they stand at the time of the answer; none
    /// for a row that was not there after the part.
    package var rows: [Int: [UInt8]]

    /// Makes an outcome.
    package init(
        refusal: BatchRefusal? = nil, isRepeat: Bool = false, results: [ChangeResult] = [],
        summary: BatchSummary? = nil, rows: [Int: [UInt8]] = [:]
    ) {
        self.refusal = refusal
        self.isRepeat = isRepeat
        self.results = results
        self.summary = summary
        self.rows = rows
    }
}

/// Why a fan-out cannot answer.
package enum FanOutError: Error, Sendable, Hashable {
    /// Durable, but not ordered within the time given.
    case pending
    /// The stream is being rebuilt, is behind, or no fan-out serves the owner's partition.
    case notReady(String)
    /// The caller was cancelled, or the fan-out stops.
    case closed
}
