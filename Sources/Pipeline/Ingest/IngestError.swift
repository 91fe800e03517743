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
    /// The committed offset is not in the log: records that nobody worked on are gone, or the log is another one (I1).
    case positionOutOfRange(UploadReference, LogRange)

    /// `changes` holds what came of a record that the log does not hold yet: the topic is another one (I1, I2).
    case uploadsLost(UploadReference, LogRange)

    /// Whether one record is what its partition cannot get past; else the log and what was committed do not belong together.
    var concernsRecord: Bool {
        switch self {
        case .newerFormat, .unknownRules, .unknownSchema: true
        case .positionOutOfRange, .uploadsLost: false
        }
    }

    /// Whether the partition goes on by itself, as soon as a schema version is known.
    var awaitsSchema: Bool { if case .unknownSchema = self { true } else { false } }

    /// The place, the cause and what to do.
    package var description: String {
        switch self {
        case .newerFormat(let upload, let reason):
            "\(Self.place(upload)): \(reason): a newer edge wrote it; upgrade this worker"
        case .unknownRules(let upload, let rules):
            "\(Self.place(upload)): rules version \(rules), this worker knows \(RulesVersion.current): upgrade it"
        case .unknownSchema(let upload, let hash):
            """
            \(Self.place(upload)): schema version \(ChangeRefusal.quoted(Array(hash.utf8).span)) is not known here: \
            the partition goes on when control has it, or stop the edge that invents it
            """
        case .positionOutOfRange(let upload, let range):
            """
            \(Self.place(upload)) is the next to work on, the log holds \(range.start) to \(range.end): restore the log, \
            or, if what is missing may be lost, reset the group's offset
            """
        case .uploadsLost(let upload, let range):
            """
            \(Self.place(upload)) came to changes long ago, the log holds \(range.start) to \(range.end): the topic was made \
            anew or lost records, and what it takes below that offset would count as seen; restore it, or append records of \
            any content to it until its end is above that offset
            """
        }
    }

    private static func place(_ upload: UploadReference) -> String {
        "\(TopicPartition(.uploads, upload.partition)) offset \(upload.offset)"
    }
}
