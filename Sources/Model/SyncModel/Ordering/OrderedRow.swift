/// A row as ordering keeps it: the columns in the last paragraph of the design's rules, and the values.
///
/// The content is behind one reference: a row is copied many times between `changes` and the tables, and each inline
/// copy would retain six references.
package struct OrderedRow: Sendable, Hashable {
    private struct Content: Sendable, Hashable {
        var key: RowKey
        var knowledgeID: KnowledgeID
        var timeStamp: TimeStamp
        var version: Int64
        var isDeleted: Bool
        var createdAt: Int64
        var updatedAt: Int64
        var writer: Device
        var writerBatch: Int64?
        var isExact: Bool
        var othersTimeStamp: TimeStamp
        var values: RowValues
    }

    private final class Box: Sendable {
        let content: Content

        init(_ content: Content) { self.content = content }
    }

    private var box: Box

    private var content: Content {
        get { box.content }
        set { box = Box(newValue) }
    }

    package var key: RowKey { box.content.key }
    /// The creating device; never changes.
    package var knowledgeID: KnowledgeID {
        get { box.content.knowledgeID }
        set { content.knowledgeID = newValue }
    }
    package var timeStamp: TimeStamp {
        get { box.content.timeStamp }
        set { content.timeStamp = newValue }
    }
    /// 1 when created, incremented by each write.
    package var version: Int64 {
        get { box.content.version }
        set { content.version = newValue }
    }
    package var isDeleted: Bool {
        get { box.content.isDeleted }
        set { content.isDeleted = newValue }
    }
    /// The log's time of the creation, microseconds since 1970; a revival keeps it.
    package var createdAt: Int64 {
        get { box.content.createdAt }
        set { content.createdAt = newValue }
    }
    /// Microseconds since 1970: the greatest `updatedAt` under lastWriteWins, else the log's time of the newest
    /// version.
    package var updatedAt: Int64 {
        get { box.content.updatedAt }
        set { content.updatedAt = newValue }
    }
    /// The device of the newest version.
    package var writer: Device {
        get { box.content.writer }
        set { content.writer = newValue }
    }
    /// The batch number of the newest version; `nil` for a batch without a number.
    package var writerBatch: Int64? {
        get { box.content.writerBatch }
        set { content.writerBatch = newValue }
    }
    /// Whether the row is exactly what the writer sent: every column, no value altered; a tombstone, whether the writer deleted it.
    ///
    /// Where the row was last written by the rules before version 4, and is under lastWriteWins, its `updatedAt`, too.
    package var isExact: Bool {
        get { box.content.isExact }
        set { content.isExact = newValue }
    }
    /// The timeStamp of the newest version by any device other than the writer, zero when there is none (rule 3).
    package var othersTimeStamp: TimeStamp {
        get { box.content.othersTimeStamp }
        set { content.othersTimeStamp = newValue }
    }
    /// The values of all columns of the partition's schema version.
    package var values: RowValues {
        get { box.content.values }
        set { content.values = newValue }
    }

    package init(
        key: RowKey, knowledgeID: KnowledgeID, timeStamp: TimeStamp, version: Int64, isDeleted: Bool, createdAt: Int64,
        updatedAt: Int64, writer: Device, writerBatch: Int64?, isExact: Bool, othersTimeStamp: TimeStamp,
        values: RowValues
    ) {
        box = Box(
            Content(
                key: key, knowledgeID: knowledgeID, timeStamp: timeStamp, version: version, isDeleted: isDeleted,
                createdAt: createdAt, updatedAt: updatedAt, writer: writer, writerBatch: writerBatch, isExact: isExact,
                othersTimeStamp: othersTimeStamp, values: values))
    }

    /// Whether an edit of version `base` had seen every version by other devices (rule 3).
    package func isCurrent(_ base: TimeStamp, for device: Device) -> Bool {
        base <= timeStamp && (writer == device ? othersTimeStamp : timeStamp) <= base
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.box === right.box || left.box.content == right.box.content
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(box.content) }
}

/// A row that ordering wrote, and the timeStamp of the version that it replaces.
package struct WrittenRow: Sendable, Hashable {
    /// The row after the step.
    package var row: OrderedRow
    /// The row's timeStamp before the step; zero for a created row.
    ///
    /// Together with the row's creating device, it locates the replaced version in the owner's stream.
    package var before: TimeStamp

    package init(_ row: OrderedRow, before: TimeStamp) {
        self.row = row
        self.before = before
    }
}

/// The position of a row in its owner's stream.
package struct RowLocator: Sendable, Hashable {
    /// The device that created the row; a stream is divided by creating device.
    package let knowledgeID: KnowledgeID
    /// The timeStamp of the row's newest version.
    package let timeStamp: TimeStamp

    package init(knowledgeID: KnowledgeID, timeStamp: TimeStamp) {
        self.knowledgeID = knowledgeID
        self.timeStamp = timeStamp
    }

    init(of row: OrderedRow) { self.init(knowledgeID: row.knowledgeID, timeStamp: row.timeStamp) }
}
