/// A log from which old records can be removed; every adapter is one.
package protocol PrunableLog: ChangeLog {
    /// Removes records of a topic that are older than a moment; appends go on meanwhile.
    ///
    /// Kept all the same: what stands at or above its partition's floor, what a group of the topic has not worked on, each
    /// partition's newest record, and everything of the topics that are kept for ever, for which this traps.
    ///
    /// - Parameters:
    ///   - topic: one that is not kept for ever.
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
