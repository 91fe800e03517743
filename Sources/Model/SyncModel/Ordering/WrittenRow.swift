/// A row that a message wrote, and what it took the place of.
package struct WrittenRow: Sendable, Hashable {
    /// The row as the message left it.
    package var row: OrderedRow
    /// The row's timeStamp before the message; zero for a row that the message made.
    ///
    /// With the row's device, which stays, it says where in the owner's stream the older state stands.
    package var before: TimeStamp

    /// States a row and its timeStamp before.
    package init(_ row: OrderedRow, before: TimeStamp) {
        self.row = row
        self.before = before
    }
}

/// Where a row stands in its owner's stream.
package struct RowLocator: Sendable, Hashable {
    /// The device that made the row; a row stays in that device's part of the stream.
    package let knowledgeID: KnowledgeID
    /// The timeStamp of the row's newest version; each version has another.
    package let timeStamp: TimeStamp

    /// Names a place.
    package init(knowledgeID: KnowledgeID, timeStamp: TimeStamp) {
        self.knowledgeID = knowledgeID
        self.timeStamp = timeStamp
    }

    init(of row: OrderedRow) { self.init(knowledgeID: row.knowledgeID, timeStamp: row.timeStamp) }
}
