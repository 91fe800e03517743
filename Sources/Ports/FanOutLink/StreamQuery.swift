import SyncModel

/// A read of one owner's rows by id or by time, for protocols that do not keep knowledge vectors.
package struct StreamQuery: Sendable, Hashable {
    /// Which rows, and in which order they come.
    package enum Selection: Sendable, Hashable {
        /// The rows of a table that have these ids, in this order; those that there are not are left out.
        case ids(table: Int, [RowID])
        /// The rows of a table in the order of their ids' bytes, after one.
        case table(Int, after: RowID?)
        /// The rows above a timeStamp, up to another, by timeStamp; of one table or of all.
        case changes(above: TimeStamp, upTo: TimeStamp, table: Int?)
    }

    package var owner: SyncID
    package var selection: Selection
    /// Maximum rows, at least 1; a fan-out returns at most ``maximumRows`` at once.
    package var limit: Int
    /// Maximum bytes of the rows' JSON; the first row is returned whatever its size.
    package var maximumBytes: Int
    /// The stream must have reached this timeStamp.
    package var leastHead: TimeStamp

    /// 1000: a millisecond or two of a reader's thread.
    package static let maximumRows = 1000

    package init(
        of owner: SyncID, _ selection: Selection, limit: Int = maximumRows, maximumBytes: Int = 1 << 20,
        leastHead: TimeStamp = .zero
    ) {
        self.owner = owner
        self.selection = selection
        self.limit = limit
        self.maximumBytes = maximumBytes
        self.leastHead = leastHead
    }
}

/// A row of a stream with what a reader of single rows needs.
package struct StreamRow: Sendable, Hashable {
    /// The table's index in the schema.
    package var table: Int
    package var timeStamp: TimeStamp
    /// ``SyncModel/OrderedRow/createdAt``: microseconds since 1970.
    package var createdAt: Int64
    /// ``SyncModel/OrderedRow/isExact``: whether its last writer has all its columns as they are.
    package var isExact: Bool
    /// How many columns it has: those that its table had when it was written.
    package var columns: Int
    /// Where it is in ``StreamRows/json``.
    package var json: Range<Int>

    package init(table: Int, timeStamp: TimeStamp, createdAt: Int64, isExact: Bool, columns: Int, json: Range<Int>) {
        self.table = table
        self.timeStamp = timeStamp
        self.createdAt = createdAt
        self.isExact = isExact
        self.columns = columns
        self.json = json
    }
}

/// Some of the rows that a ``StreamQuery`` selects.
package struct StreamRows: Sendable, Hashable {
    package private(set) var rows: [StreamRow] = []
    /// The rows as in the client contract, each with its last writer.
    package private(set) var json: [UInt8] = []
    /// The stream's newest timeStamp when they were read; zero for an owner without rows.
    package var head: TimeStamp
    /// What was not looked at yet; `nil` at the end.
    package var rest: StreamQuery.Selection?

    package init(head: TimeStamp = .zero, rest: StreamQuery.Selection? = nil) {
        self.head = head
        self.rest = rest
    }

    /// Makes space for rows that will be added.
    package mutating func reserve(rows count: Int, bytes: Int) {
        rows.reserveCapacity(count)
        json.reserveCapacity(bytes)
    }

    /// Adds a row.
    package mutating func append(
        table: Int, timeStamp: TimeStamp, createdAt: Int64, isExact: Bool, columns: Int, json row: RawSpan
    ) {
        let start = json.count
        row.withUnsafeBytes { json.append(contentsOf: $0) }
        rows.append(
            StreamRow(
                table: table, timeStamp: timeStamp, createdAt: createdAt, isExact: isExact, columns: columns,
                json: start..<json.count))
    }
}
