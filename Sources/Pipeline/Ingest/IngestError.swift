import ChangeLog
import SyncModel

/// Why a partition of `uploads` must wait; the message says what to do.
package enum IngestError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The record is of a format that this worker does not know.
    case newerFormat(UploadReference, String)
    /// The record asks for rules that this worker does not know.
    case unknownRules(UploadReference, Int)
    /// The record names a schema version that this worker does not know.
    case unknownSchema(UploadReference, String)
    /// The committed offset is not in the log: records that were not processed are gone, or the log is another one (I1).
    case positionOutOfRange(UploadReference, LogRange)
    /// `changes` holds parts of a record that the log does not hold yet: the topic is another one (I1, I2).
    case uploadsLost(UploadReference, LogRange)

    package var description: String {
        switch self {
        case .newerFormat(let upload, let reason):
            "\(Self.position(upload)): \(reason): a newer edge wrote it; upgrade this worker"
        case .unknownRules(let upload, let rules):
            "\(Self.position(upload)): rules version \(rules), this worker knows \(RulesVersion.current): upgrade it"
        case .unknownSchema(let upload, let hash):
            """
            \(Self.position(upload)): schema version \(ChangeRefusal.quoted(Array(hash.utf8).span)) is not known here: \
            the partition resumes when control has it; if no version has this hash, stop the edge that sends it, and leave the \
            record out with weir skip
            """
        case .positionOutOfRange(let upload, let range):
            """
            \(Self.position(upload)) is the committed offset, but the log holds \(range.start) to \(range.end): restore the log, \
            or, if what is missing may be lost, reset the group's offset
            """
        case .uploadsLost(let upload, let range):
            """
            \(Self.position(upload)) has parts in changes, but the log holds \(range.start) to \(range.end): the topic was \
            recreated or lost records, and records that it assigns offsets up to that one would be dropped as repeats; \
            restore it, or append records of any content to it until its end is above that offset
            """
        }
    }

    /// Whether the partition waits for a schema version.
    var isOfSchema: Bool { if case .unknownSchema = self { true } else { false } }

    private static func position(_ upload: UploadReference) -> String {
        "\(TopicPartition(.uploads, upload.partition)) offset \(upload.offset)"
    }
}
