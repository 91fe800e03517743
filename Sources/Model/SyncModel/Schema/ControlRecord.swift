/// The settings that are fixed when the topics are created: the record `history` of `control`.
package struct History: Sendable, Hashable {
    /// Identifies this creation of the topics: 16 random bytes in lower-case hexadecimal.
    package var epoch: String
    /// The number of partitions of each of `uploads`, `changes` and `ordered`.
    package var partitions: Int
    /// ``Partitioning/functionName``.
    package var partitionFunction: String
    package var clock: TimeStampClock
    /// The size in bytes at which ordering splits a result; fixed so that a repeated result has the same pieces.
    package var pieceSize: Int
    /// The number of databases that hold the tables.
    ///
    /// Partition p is stored in database p modulo this, permanently.
    package var shards: Int
    /// The size of the largest record, key and value together, that stages append.
    ///
    /// Fixed, because a batch whose parts are larger is refused: that must not depend on the log's present limit (I4).
    package var recordSize: Int

    package init(
        epoch: String, partitions: Int, partitionFunction: String = Partitioning.functionName,
        clock: TimeStampClock = .logTime, pieceSize: Int = 512 * 1024, shards: Int = 1,
        recordSize: Int = 32 << 20
    ) {
        self.epoch = epoch
        self.partitions = partitions
        self.partitionFunction = partitionFunction
        self.clock = clock
        self.pieceSize = pieceSize
        self.shards = shards
        self.recordSize = recordSize
    }

    /// What a record takes beside its rows: ids, 1,000 grants at most, and the bytes before each value.
    package static let recordOverhead = 512 << 10

    /// The limit of a row in records of ``recordSize``, which must hold a row of this size with the defaults of columns that
    /// were declared later, at most as much again.
    package var maximumRowBytes: Int { max(0, recordSize - Self.recordOverhead) / 2 }
}

/// A record of `control`, the topic of what all roles must agree on.
package enum ControlRecord: Sendable, Hashable {
    /// Written once, before all other records.
    case history(History)
    /// A schema version.
    case schema(SchemaHistory.Entry)
    /// A record that is left out.
    case skip(SkippedRecord)
    /// A device that is revoked, or is so no longer.
    case device(DeviceDecision)
}
