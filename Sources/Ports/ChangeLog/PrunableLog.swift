/// A log from which old records can be removed; every adapter is one.
package protocol PrunableLog: ChangeLog {
    /// Removes records of a topic that are older than a moment; appends continue meanwhile.
    ///
    /// Kept all the same: records at or above their partition's floor, those that a group of the topic has not committed, each
    /// partition's newest record, and everything of the topics that are kept permanently, for which this traps.
    ///
    /// A log may forget a group, as Kafka does after some time without members, and with a mirror of the topics alone: then
    /// `consumers` keeps what the group has yet to read.
    ///
    /// - Parameters:
    ///   - topic: one that is not kept permanently.
    ///   - time: in microseconds since 1970; records from this moment on stay.
    ///   - floors: by partition, the offset from which on records stay however old they are; a partition without one has
    ///     none.
    ///   - consumers: groups of the topic; in a partition of which one of them has committed no offset, nothing is removed.
    func removeRecords(
        of topic: Topic, before time: Int64, floors: [Int: Int64], consumers: [String]
    ) async throws(ChangeLogError)
}

extension PrunableLog {
    /// Removes records that are older than a moment in microseconds since 1970, of a topic whose groups the log knows; see
    /// ``removeRecords(of:before:floors:consumers:)``.
    package func removeRecords(
        of topic: Topic, before time: Int64, floors: [Int: Int64] = [:]
    ) async throws(ChangeLogError) {
        try await removeRecords(of: topic, before: time, floors: floors, consumers: [])
    }
}
