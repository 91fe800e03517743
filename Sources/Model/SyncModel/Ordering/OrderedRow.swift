/// A row as ordering keeps it: the columns that the design's last rule paragraph names, and the values.
///
/// Its content lies behind one reference: a row is handed on many times between `changes` and the tables, and each copy of
/// it in place would count the references of six.
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

    /// Which row.
    package var key: RowKey { box.content.key }
    /// The device that made it; stays.
    package var knowledgeID: KnowledgeID {
        get { box.content.knowledgeID }
        set { content.knowledgeID = newValue }
    }
    /// The timeStamp of its newest version.
    package var timeStamp: TimeStamp {
        get { box.content.timeStamp }
        set { content.timeStamp = newValue }
    }
    /// 1 when made, one more with each write.
    package var version: Int64 {
        get { box.content.version }
        set { content.version = newValue }
    }
    /// Whether it is a tombstone.
    package var isDeleted: Bool {
        get { box.content.isDeleted }
        set { content.isDeleted = newValue }
    }
    /// Microseconds since 1970, the log's time of its creation; stays, through a revival too.
    package var createdAt: Int64 {
        get { box.content.createdAt }
        set { content.createdAt = newValue }
    }
    /// Microseconds since 1970: the greatest `updatedAt` under lastWriteWins, else the log's time of the newest version.
    package var updatedAt: Int64 {
        get { box.content.updatedAt }
        set { content.updatedAt = newValue }
    }
    /// The device that wrote the newest version.
    package var writer: Device {
        get { box.content.writer }
        set { content.writer = newValue }
    }
    /// The batch that wrote it, when numbered.
    package var writerBatch: Int64? {
        get { box.content.writerBatch }
        set { content.writerBatch = newValue }
    }
    /// Whether the row is exactly what that writer sent: every column, none altered.
    package var isExact: Bool {
        get { box.content.isExact }
        set { content.isExact = newValue }
    }
    /// The timeStamp of the newest version by any device other than the writer, zero when there is none (rule 3).
    package var othersTimeStamp: TimeStamp {
        get { box.content.othersTimeStamp }
        set { content.othersTimeStamp = newValue }
    }
    /// The values of all columns of the schema version that the partition had reached.
    package var values: RowValues {
        get { box.content.values }
        set { content.values = newValue }
    }

    /// Makes a row.
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

    /// Whether an edit that was made on the version `base` had seen every version of other devices (rule 3).
    package func isCurrent(_ base: TimeStamp, for device: Device) -> Bool {
        base <= timeStamp && (writer == device ? othersTimeStamp : timeStamp) <= base
    }

    /// Equal when every column and every value is.
    package static func == (left: Self, right: Self) -> Bool {
        left.box === right.box || left.box.content == right.box.content
    }

    /// Hashes what equality compares.
    package func hash(into hasher: inout Hasher) { hasher.combine(box.content) }
}
