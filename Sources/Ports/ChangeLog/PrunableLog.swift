/// A log from which old records can be removed; every adapter is one.
package protocol PrunableLog: ChangeLog {
    /// Removes records of a topic that are older than a moment; appends continue meanwhile.
    ///
    /// Kept all the same: records at or above their partition's floor, those that a group of the topic has not committed, each
    /// partition's newest record, and everything of the topics that are kept permanently, for which this traps.
    ///
    /// - Parameters:
    ///   - topic: one that is not kept permanently.
    ///   - time: in microseconds since 1970; records from this moment on stay.
    ///   - floors: by partition, the offset from which on records stay however old they are; a partition without one has
    ///     none.
    func removeRecords(of topic: Topic, before time: Int64, floors: [Int: Int64]) async throws(ChangeLogError)
}

extension PrunableLog {
    /// Removes records that are older than a moment in microseconds since 1970, where no partition has a floor; see
    /// ``removeRecords(of:before:floors:)``.
    package func removeRecords(of topic: Topic, before time: Int64) async throws(ChangeLogError) {
        try await removeRecords(of: topic, before: time, floors: [:])
    }
}
