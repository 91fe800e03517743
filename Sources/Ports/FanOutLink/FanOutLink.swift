import SyncModel
import Synchronization

/// The gateway's interface to the fan-outs of its owners: a call within one process, otherwise a connection.
///
/// The gateway reads neither streams nor `ordered` itself. The caller bounds the time of every call. No call reports an
/// owner as drained whose stream cannot be read.
package protocol FanOutLink: Sendable {
    /// Answers a pull without new rows from memory; `nil` when ``pull(_:within:)`` is necessary.
    func idlePage(_ request: OwnerPull) -> OwnerPage?

    /// Reads one page of each owner's stream, owner after owner, until the page's limits are reached.
    ///
    /// When a vector, the head of its last cut page or ``OwnerPull/leastHead`` is above a stream's head, waits for the stream at
    /// most `within`, then throws ``FanOutError/notReady(_:)``. If it is also above the end of the log, the owner's page is
    /// ``OwnerPage/Content/historyChanged``.
    func pull(_ request: PagePull, within: Duration) async throws(FanOutError) -> [OwnerPage]

    /// Waits for the outcome of one part of an upload at most `within`, then throws ``FanOutError/pending``.
    ///
    /// - Parameter rows: which of its rows are read; `nil`: none.
    func outcome(of part: PartReference, rows: RowWindow?, within: Duration) async throws(FanOutError) -> PartOutcome

    /// The stored outcome of a device's batch with an owner. Waits for one at most `within`, then returns `nil`.
    ///
    /// - Parameter rows: which of its rows are read; `nil`: none.
    func keptOutcome(
        of batch: Int64, for key: DeviceKey, rows: RowWindow?, within: Duration
    ) async throws(FanOutError) -> PartOutcome?

    /// The newest timeStamp of each owner's stream; zero for an owner without rows.
    func heads(of owners: [SyncID]) async throws(FanOutError) -> [TimeStamp]

    /// Reads rows of one owner by id or by time, as many as one turn of a reader may; the answer says what is left.
    ///
    /// When ``StreamQuery/leastHead`` is above the stream's head, waits for the stream at most `within`, then throws
    /// ``FanOutError/notReady(_:)``; also where the fan-out has no index for the selection.
    ///
    /// - Returns: `nil` when it is also above the end of the log: it is from another history.
    func rows(_ query: StreamQuery, within: Duration) async throws(FanOutError) -> StreamRows?

    /// Calls `moved` with the new head after each advance of an owner's head, until the subscription is cancelled.
    ///
    /// `moved` is called on a thread of the fan-out and must return immediately.
    func subscribe(to owners: [SyncID], moved: @escaping @Sendable (SyncID, TimeStamp) -> Void)
        -> any FanOutSubscription
}

/// A subscription; it ends with this object.
package protocol FanOutSubscription: Sendable {
    /// No call of `moved` begins after this returns.
    func cancel()
}

/// A pull of one owner's stream.
package struct OwnerPull: Sendable, Hashable {
    package var owner: SyncID
    package var knowledge: OwnerKnowledge
    /// TimeStamps of rows that the device holds although its vector does not contain them: results of the same answer
    /// (I6).
    package var held: Set<TimeStamp>
    /// The head of the stream from which the same answer has an outcome: the page must not be older (I7).
    package var leastHead: TimeStamp
    /// The number of ``OwnerRows/entries`` above which ``OwnerRows/floor`` replaces those that are not above it.
    package var maximumEntries: Int

    package init(
        owner: SyncID, knowledge: OwnerKnowledge, held: Set<TimeStamp> = [], leastHead: TimeStamp = .zero,
        maximumEntries: Int = .max
    ) {
        self.maximumEntries = maximumEntries
        self.owner = owner
        self.knowledge = knowledge
        self.held = held
        self.leastHead = leastHead
    }

    /// The head that the stream must have reached to answer.
    package var requiredHead: TimeStamp { max(knowledge.requiredHead, leastHead) }
}

/// A pull of several owners' streams into one page.
package struct PagePull: Sendable, Hashable {
    /// In the order of the answer.
    package var owners: [OwnerPull]
    /// Maximum rows in total, at least 1.
    package var limit: Int
    /// Maximum bytes of the rows' JSON; the first row is sent whatever its size.
    package var maximumBytes: Int
    /// Whether the page has rows already: both limits are then what remains of it, possibly 0 or less, and no row
    /// exceeds them.
    package var isContinued: Bool

    package init(owners: [OwnerPull], limit: Int, maximumBytes: Int, isContinued: Bool = false) {
        self.owners = owners
        self.limit = limit
        self.maximumBytes = maximumBytes
        self.isContinued = isContinued
    }
}

package struct OwnerPage: Sendable, Hashable {
    package enum Content: Sendable, Hashable {
        case rows(OwnerRows)
        /// The vector is above the end of the log: the device must resync (I7).
        case historyChanged
    }

    package let owner: SyncID
    package let content: Content

    package init(owner: SyncID, content: Content) {
        self.owner = owner
        self.content = content
    }
}

extension [OwnerPage] {
    /// The rows of all pages, and the bytes of their JSON.
    package var size: (rows: Int, bytes: Int) {
        reduce(into: (0, 0)) { size, page in
            guard case .rows(let rows) = page.content else { return }
            size.rows += rows.count
            size.bytes += rows.json.count
        }
    }
}

/// Rows of one owner, by timeStamp.
package struct OwnerRows: Sendable, Hashable {
    /// The rows as in the client contract, separated by commas.
    package var json: [UInt8]
    package var count: Int
    package typealias Entry = (device: KnowledgeID, timeStamp: TimeStamp)

    /// The entries of the device's vector after these rows: all that it sent, never lower, and new ones (I7); with a
    /// ``floor`` those above it.
    package var entries: [Entry]
    /// The new floor of the device's vector, in place of the entries that are not above it; `nil` when the floor stays.
    package var floor: TimeStamp?
    /// The stream's newest timeStamp; zero for an owner without rows.
    package var head: TimeStamp
    /// Whether the device lacks further rows of the owner.
    package var hasMore: Bool

    /// The device's ``SyncModel/OwnerKnowledge/cutFrom`` after this page, if it was `known` before.
    ///
    /// - Returns: the stream's head when the page was cut after rows, `known` when it was cut without rows, `nil` for a
    ///   drained owner.
    package func cutFrom(known: TimeStamp?) -> TimeStamp? { hasMore ? count > 0 ? head : known : nil }

    package init(
        json: [UInt8] = [], count: Int = 0, entries: [Entry] = [], floor: TimeStamp? = nil,
        head: TimeStamp = .zero, hasMore: Bool = false
    ) {
        self.floor = floor
        self.json = json
        self.count = count
        self.entries = entries
        self.head = head
        self.hasMore = hasMore
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.json == right.json && left.count == right.count && left.head == right.head
            && left.hasMore == right.hasMore && left.floor == right.floor
            && left.entries.elementsEqual(right.entries) { $0 == $1 }
    }

    /// Hashes the members that differ most often.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(json)
        hasher.combine(head)
    }
}

/// One owner's part of an upload.
package struct PartReference: Sendable, Hashable {
    package var upload: UploadReference
    /// 0 for the caller's own part.
    package var part: Int
    package var key: DeviceKey
    package var batch: Int64?

    package init(upload: UploadReference, part: Int, key: DeviceKey, batch: Int64?) {
        self.upload = upload
        self.part = part
        self.key = key
        self.batch = batch
    }
}

/// Which rows of conflicts and refusals are read with the outcome of a part.
package struct RowWindow: Sendable, Hashable {
    /// The index of the first change whose row is read.
    package var from: Int
    /// The index of the first change after it whose row is not.
    package var end: Int
    /// The size of the rows, after which the window ends; the row of the first change is read whatever its size.
    package var maximumBytes: Int

    package init(from: Int = 0, to end: Int = .max, maximumBytes: Int) {
        self.from = from
        self.end = end
        self.maximumBytes = maximumBytes
    }
}

/// The outcome of one owner's part of a batch, with the rows for its answer.
package struct PartOutcome: Sendable, Hashable {
    /// Why nothing was applied; `nil` when there are results.
    package var refusal: BatchRefusal?
    /// Whether this is the first outcome of a repeated batch, which leaves no row out of a pull (I6).
    package var isRepeat: Bool
    package var results: [ChangeResult]
    /// Part 0 only.
    package var summary: BatchSummary?
    /// The server's current rows for conflicts and refusals, each once, by the index of the first change that shows it.
    ///
    /// A row that did not exist after the part is missing, and so are rows after the window's end or its size.
    package var rows: [Int: [UInt8]]
    /// The newest timeStamp of the owner's stream that has the results and the rows.
    package var head: TimeStamp

    package init(
        refusal: BatchRefusal? = nil, isRepeat: Bool = false, results: [ChangeResult] = [],
        summary: BatchSummary? = nil, rows: [Int: [UInt8]] = [:], head: TimeStamp = .zero
    ) {
        self.head = head
        self.refusal = refusal
        self.isRepeat = isRepeat
        self.results = results
        self.summary = summary
        self.rows = rows
    }
}

package enum FanOutError: Error, Sendable, Hashable {
    /// The upload is durable, but was not ordered in time.
    case pending
    /// The stream is being rebuilt or is behind, or no fan-out serves the owner's partition.
    case notReady(String)
    /// The caller was cancelled, or the fan-out is stopping.
    case closed
}

/// A callback of ``FanOutLink/subscribe(to:moved:)``.
package final class Subscriber: Sendable {
    /// `nil` after ``cancel()``.
    private let moved: Mutex<(@Sendable (SyncID, TimeStamp) -> Void)?>

    package init(_ moved: @escaping @Sendable (SyncID, TimeStamp) -> Void) { self.moved = Mutex(moved) }

    /// Calls it unless it was cancelled.
    ///
    /// Runs under the lock, so that no call begins after ``cancel()`` has returned; callbacks return immediately.
    package func call(_ owner: SyncID, _ head: TimeStamp) { moved.withLock { $0?(owner, head) } }

    package func cancel() {
        // Releases the closure outside the lock: it may hold this subscriber.
        let moved = moved.withLock { moved in
            defer { moved = nil }
            return moved
        }
        _ = consume moved
    }
}
