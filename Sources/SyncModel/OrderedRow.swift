/// A row as ordering keeps it: the columns that the design's last rule paragraph names, and the values.
public struct OrderedRow: Sendable, Hashable {
    /// Which row.
    public let key: RowKey
    /// The device that made it; stays.
    public var knowledgeID: KnowledgeID
    /// The timeStamp of its newest version.
    public var timeStamp: TimeStamp
    /// 1 when made, one more with each write.
    public var version: Int64
    /// Whether it is a tombstone.
    public var isDeleted: Bool
    /// Microseconds since 1970, the log's time of its creation; stays, through a revival too.
    public var createdAt: Int64
    /// Microseconds since 1970: the greatest `updatedAt` under lastWriteWins, else the log's time of the newest version.
    public var updatedAt: Int64
    /// The device that wrote the newest version.
    public var writer: Device
    /// The batch that wrote it, when numbered.
    public var writerBatch: Int64?
    /// Whether the row is exactly what that writer sent: every column, none altered.
    public var isExact: Bool
    /// The timeStamp of the newest version by any device other than the writer, zero when there is none (rule 3).
    public var othersTimeStamp: TimeStamp
    /// The values of all columns of the schema version that the partition had reached.
    public var values: RowValues

    /// Makes a row.
    public init(
        key: RowKey, knowledgeID: KnowledgeID, timeStamp: TimeStamp, version: Int64, isDeleted: Bool, createdAt: Int64,
        updatedAt: Int64, writer: Device, writerBatch: Int64?, isExact: Bool, othersTimeStamp: TimeStamp,
        values: RowValues
    ) {
        self.key = key
        self.knowledgeID = knowledgeID
        self.timeStamp = timeStamp
        self.version = version
        self.isDeleted = isDeleted
        self.createdAt = createdAt
        self.updatedAt = updatedAt
        self.writer = writer
        self.writerBatch = writerBatch
        self.isExact = isExact
        self.othersTimeStamp = othersTimeStamp
        self.values = values
    }

    /// Whether an edit that was made on the version `base` had seen every version of other devices (rule 3).
    public func isCurrent(_ base: TimeStamp, for device: Device) -> Bool {
        base <= timeStamp && (writer == device ? othersTimeStamp : timeStamp) <= base
    }
}
