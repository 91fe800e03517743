/// A row that a message wrote, and what it took the place of.
public struct WrittenRow: Sendable, Hashable {
    /// The row as the message left it.
    public var row: OrderedRow
    /// The row's timeStamp before the message; zero for a row that the message made.
    ///
    /// With the row's device, which stays, it says where in the owner's stream the older state stands.
    public var before: TimeStamp

    /// States a row and its timeStamp before.
    public init(_ row: OrderedRow, before: TimeStamp) {
        self.row = row
        self.before = before
    }
}

/// Where a row stands in its owner's stream.
public struct RowPlace: Sendable, Hashable {
    /// The device that made the row; a row stays in that device's part of the stream.
    public let knowledgeID: KnowledgeID
    /// The timeStamp of the row's newest version; each version has another.
    public let timeStamp: TimeStamp

    /// Names a place.
    public init(knowledgeID: KnowledgeID, timeStamp: TimeStamp) {
        self.knowledgeID = knowledgeID
        self.timeStamp = timeStamp
    }

    init(of row: OrderedRow) { self.init(knowledgeID: row.knowledgeID, timeStamp: row.timeStamp) }
}
