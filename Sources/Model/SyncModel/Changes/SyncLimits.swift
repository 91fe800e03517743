/// What a batch may hold: gateways refuse more at once, ingest refuses what is wrong inside, clients read it from the schema.
package struct SyncLimits: Sendable, Hashable {
    /// Bytes of a whole request, decompressed.
    package var maxBatchBytes: Int
    /// Changes of a batch.
    package var maxChanges: Int
    /// Bytes of a value's canonical JSON.
    package var maxValueBytes: Int

    /// Makes limits.
    package init(maxBatchBytes: Int = 4 << 20, maxChanges: Int = 10_000, maxValueBytes: Int = 256 << 10) {
        self.maxBatchBytes = maxBatchBytes
        self.maxChanges = maxChanges
        self.maxValueBytes = maxValueBytes
    }
}
