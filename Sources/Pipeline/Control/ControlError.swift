import SyncModel

/// Why a process cannot take part in a history; the message says what to do.
package enum ControlError: Error, Sendable, CustomStringConvertible {
    /// `control` names no history: the log is empty.
    case noHistory
    /// `control` names two histories.
    case severalHistories
    /// The history that was appended to `control` is not in it.
    case historyLost
    /// `control` does not hold any more what a running process knows of it; the reason says what is there.
    case historyGone(String)
    /// `control` names another history than the one that a running process began with.
    case otherHistory(found: String, own: String)
    /// A record cannot be read.
    case unreadableRecord(offset: Int64, reason: String)
    /// A schema version is missing.
    case schemaGap(found: Int, expected: Int)
    /// Owners would live in other partitions than their rows.
    case otherPartitionCount(recorded: Int, configured: Int)
    /// Owners would live in other partitions than their rows.
    case otherPartitionFunction(String)
    /// Rows would be looked for in other databases than theirs.
    case otherShardCount(recorded: Int, configured: Int)
    /// TimeStamps would grow in another way than before.
    case otherClock(recorded: TimeStampClock, configured: TimeStampClock)
    /// Stages could not append records that others append.
    case recordsTooLarge(recorded: Int, configured: Int)
    /// A schema version was registered while a record was left out, so that this does not count.
    case overtakenDecision
    /// The schema would lose data that the newest version keeps.
    case incompatibleSchema(SchemaRefusal)

    /// The cause and what to do.
    package var description: String {
        switch self {
        case .noHistory:
            "the log holds no history: nothing was ever written to it, or it is not the one that is meant"
        case .severalHistories:
            """
            control names two histories: two sets of topics were mixed, or two processes began one at once; restore one of \
            them, or remove the topics if they are new
            """
        case .historyLost:
            "control does not hold the history that was written to it just now: the log loses records; check its retention"
        case .historyGone(let reason):
            """
            control does not hold this history any more (\(reason)): topics were deleted or recreated, or other brokers \
            answer at this address; nothing is appended until the topics are restored
            """
        case .otherHistory(let found, let own):
            """
            control names history \(found), this process began with \(own): topics were recreated, or other brokers answer at \
            this address; restore the topics or the address, or start this process again to take part in the new history, \
            whose databases must be new, too
            """
        case .unreadableRecord(let offset, let reason):
            "control offset \(offset): the record cannot be read (\(reason)): restore the topic, or upgrade this process"
        case .schemaGap(let found, let expected):
            "control holds schema version \(found) where \(expected) must come: records are missing; restore the topic"
        case .otherPartitionCount(let recorded, let configured):
            """
            this history was made with \(recorded) partitions, \(configured) are configured: an owner lives in one partition \
            permanently, so set partitions to \(recorded) or begin a new history in an empty place
            """
        case .otherPartitionFunction(let recorded):
            "this history gives owners their partition by \(recorded), which this version of Weir does not know: upgrade it"
        case .otherShardCount(let recorded, let configured):
            """
            this history was made with its tables in \(recorded) databases, \(configured) are configured: a partition lives in \
            one database permanently, so name the \(recorded) databases in the order they had, or begin a new history in an \
            empty place
            """
        case .otherClock(let recorded, let configured):
            """
            this history was made with clock \(recorded.name), \(configured.name) is configured: set it back, or begin a \
            new history in an empty place
            """
        case .recordsTooLarge(let recorded, let configured):
            """
            the records of this history have up to \(recorded) bytes, and max-record-bytes is \(configured): set it to \(recorded) \
            or more
            """
        case .overtakenDecision:
            "a schema version was registered at the same time, with which the record may be processed: try again"
        case .incompatibleSchema(let refusal):
            "the schema cannot follow the one that this history has:\n\(refusal)"
        }
    }
}

extension TimeStampClock {
    /// The clock as the configuration spells it.
    package var name: String {
        switch self {
        case .logTime: "log-time"
        case .sequence(let first): "sequence(\(first))"
        }
    }
}
