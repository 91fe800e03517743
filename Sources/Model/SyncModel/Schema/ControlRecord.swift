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

    package init(
        epoch: String, partitions: Int, partitionFunction: String = Partitioning.functionName,
        clock: TimeStampClock = .logTime, pieceSize: Int = 512 * 1024, shards: Int = 1
    ) {
        self.epoch = epoch
        self.partitions = partitions
        self.partitionFunction = partitionFunction
        self.clock = clock
        self.pieceSize = pieceSize
        self.shards = shards
    }
}

/// A record of `control`, the topic of what all roles must agree on.
package enum ControlRecord: Sendable, Hashable {
    /// Written once, before all other records.
    case history(History)
    /// A schema version.
    case schema(SchemaHistory.Entry)
}
