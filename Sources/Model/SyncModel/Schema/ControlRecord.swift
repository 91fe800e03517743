/// What a history is made with and keeps: the record `history` of `control`.
package struct History: Sendable, Hashable {
    /// The id of this history, made with the topics: 16 random bytes in lower-case hexadecimal.
    package var epoch: String
    /// How many partitions `uploads`, `changes` and `ordered` have.
    package var partitions: Int
    /// The function that gives an owner its partition (``Partitioning/functionName``).
    package var partitionFunction: String
    /// How timeStamps grow.
    package var clock: TimeStampClock
    /// The size in bytes at which ordering begins a new piece of a result: a repeated result must be cut at the same places.
    package var pieceSize: Int
    /// How many databases hold the tables: partition p lives in number p modulo this, for ever.
    package var shards: Int

    /// Makes the record of a new history.
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

/// A record of `control`: what all roles must agree on.
package enum ControlRecord: Sendable, Hashable {
    /// The history; written once, before anything else.
    case history(History)
    /// A schema version, kept under its ordinal.
    case schema(SchemaHistory.Entry)
}
